/* guest_remote: a guest in a box on a server, by its HTTP API.
 *
 *     POST /v1/sessions ─▶ PUT files ─▶ POST cells (events) ─▶ GET files ─▶ DELETE
 *                                            └ POST interrupt
 *
 * The server is trusted with what we send it, and no more: its answers are bounded and checked, and what it
 * says of files goes through cli/export as a guest's own words do. However we leave, the session is deleted
 * as long as the server can be reached; where it cannot, its idle time ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "guest/remote.h"
#include "session/sanitise.h"
#include "wire/proto.h"

#define PATIENCE_S 10  /* Retry-After up to here is waited for, once */
#define CHECK_MS 5000  /* the interpreter has a second; the rest is the way */
#define CLOSE_MS 10000 /* for the end of an idle session */
#define LEAVE_MS                                                                                   \
    1000 /* for the same with a cell in it, which the server ends without us, and after a signal */
#define INDENT_MAX 1024
#define LIST_PAGE 200   /* paths are up to 4 KiB long, and an answer is collected up to 1 MiB */
#define LIST_PAGES 1000 /* a server that always has a next one ends here */

/* ---- what an answer says ---- */

const char *remote_text(const json_t *j, const char *member)
{
    const char *text = json_string_value(json_object_get(j, member));
    return text ? text : "";
}

/* The server's words go to a terminal: on one line, and harmless. */
static void say_status(const struct call *call, const char *message, struct err *e)
{
    char plain[300];

    sanitise_name(message, plain, sizeof(plain));
    if (!plain[0])
        err_set(e, 0, "what answers there is not a retort server (HTTP %u)", call->status);
    else if (call->status == 401)
        err_set(
            e, 0,
            "the server refuses us: %s (the token comes with the address, by --token-file, or from "
            "RETORT_TOKEN)",
            plain);
    else if (call->retry_after_s)
        err_set(e, 0, "the server cannot now: %s (HTTP %u; try again in %u s)", plain, call->status,
                call->retry_after_s);
    else
        err_set(e, 0, "the server says: %s (HTTP %u)", plain, call->status);
}

int remote_call_failed(const struct call *call, struct err *e)
{
    if (!call->status) {
        *e = call->e;
        return -1;
    }
    json_t *j = json_loadb(call->body.data ? call->body.data : "", call->body.len, 0, NULL);
    say_status(call, remote_text(json_object_get(j, "error"), "message"), e);
    json_decref(j);
    return -1;
}

void remote_call_done(struct call **call)
{
    if (*call)
        call_end(*call);
    *call = NULL;
}

int remote_wait(struct guest *g, const struct call *call, struct err *e)
{
    while (!call->over) {
        int turn = owner_turn(g->owner, -1, e);
        if (turn < 0 || turn & (TURN_SIGINT | TURN_STOP | TURN_CLOSED))
            return turn;
    }
    if (!call->status && !call->ours)
        owner_lose(g->owner, &call->e);
    return 0;
}

struct call *remote_call(struct remote *r, const char *method, const char *what, char *body)
{
    cleanup_free char *path = xasprintf("/v1/sessions/%s%s", r->id, what);

    return call_begin(r->client, &(struct call_spec){.method = method, .path = path, .body = body});
}

/* ---- opening ---- */

char *remote_dump(json_t *j)
{
    char *text = json_dumps(j, JSON_COMPACT);

    assert_that(text);
    json_decref(j);
    return text;
}

static json_t *limits_wished(const struct guest *g)
{
    json_t *j = json_object();

    for (unsigned i = 0; limits_name(i); i++) {
        int none;
        double value = limits_value(&g->limits, i, &none);
        if (g->owner->wish.limits & 1u << i)
            json_object_set_new(j, limits_name(i), none ? json_string("none") : json_real(value));
    }
    return j;
}

char *remote_wish(const struct guest *g)
{
    const struct wish *w = &g->owner->wish;
    json_t *j = json_object();

    json_object_set_new(j, "limits", limits_wished(g));
    if (w->checkpoints >= 0)
        json_object_set_new(j, "checkpoints", json_integer(w->checkpoints));
    if (w->environment)
        json_object_set_new(j, "environment", json_string(w->environment));
    if (w->idle_s)
        json_object_set_new(j, "idle_timeout", json_integer(w->idle_s));
    return remote_dump(j);
}

static bool id_ok(const char *id)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-";
    size_t len = strlen(id);

    return len > 0 && len <= REMOTE_ID_MAX && strspn(id, plain) == len && id[0] != '.';
}

static int take_limits(struct guest *g, const json_t *limits)
{
    const char *name;
    struct err ignored;

    for (unsigned i = 0; (name = limits_name(i)); i++) {
        const json_t *j = json_object_get(limits, name);
        char text[64] = "none";
        if (json_is_number(j))
            snprintf(text, sizeof(text), "%.15g", json_number_value(j));
        else if (!json_is_string(j) || strcmp(json_string_value(j), "none") != 0)
            return -1;
        if (limits_set(&g->limits, name, text, &ignored) < 0)
            return -1;
    }
    return 0;
}

int remote_take_session_json(struct guest *g, const json_t *j, struct err *e)
{
    struct remote *r = g->remote;
    const json_t *idle = json_object_get(j, "idle_timeout");
    const char *id = remote_text(j, "id");
    bool good = id_ok(id) && take_limits(g, json_object_get(j, "limits")) == 0;

    if (good) {
        strcpy(r->id, id);
        free(r->environment);
        r->environment = xstrdup(remote_text(j, "environment"));
    }
    if (json_is_number(idle) && json_number_value(idle) < 1e9)
        r->keep_ms = (int64_t)(json_number_value(idle) * 1000 / 3) + 1;
    return good ? 0 : err_set(e, 0, "what answers there is not a retort server");
}

int remote_take_session(struct guest *g, const struct call *call, struct err *e)
{
    json_t *j = json_loadb(call->body.data ? call->body.data : "", call->body.len, 0, NULL);
    int result = remote_take_session_json(g, j, e);

    json_decref(j);
    return result;
}

static int sleep_s(struct guest *g, unsigned seconds, struct err *e)
{
    int64_t until = clock_now_ms() + seconds * 1000;

    for (;;) {
        int64_t left = until - clock_now_ms();
        if (left <= 0)
            return 0;
        client_wake(g->remote->client, (int)left);
        int turn = owner_turn(g->owner, -1, e);
        if (turn < 0 || turn & (TURN_SIGINT | TURN_STOP | TURN_CLOSED))
            return turn;
    }
}

bool remote_is_gone(const struct call *call)
{
    return call->status == 404 || call->status == 410;
}

bool remote_worth_waiting(const struct call *call)
{
    return (call->status == 429 || call->status == 503) && call->retry_after_s > 0 &&
           call->retry_after_s <= PATIENCE_S;
}

static int create(struct guest *g, bool again, struct err *e)
{
    const struct call_spec spec = {
        .method = "POST", .path = "/v1/sessions", .body = remote_wish(g)};
    cleanup_call struct call *call = call_begin(g->remote->client, &spec);
    int turn = remote_wait(g, call, e);

    if (turn != 0)
        return turn;
    if (call->status == 201)
        return remote_take_session(g, call, e);
    if (again || !remote_worth_waiting(call))
        return remote_call_failed(call, e);
    remote_call_failed(call, e);
    outlet_note(&g->owner->out, "%s; waiting", e->text);
    turn = sleep_s(g, call->retry_after_s, e);
    return turn != 0 ? turn : create(g, true, e);
}

/* One that is there already. */
static int join(struct guest *g, struct err *e)
{
    cleanup_buf struct buf path = {0};

    buf_add_text(&path, "/v1/sessions/");
    call_add_path(&path, g->owner->wish.session);
    cleanup_call struct call *call = call_begin(
        g->remote->client, &(struct call_spec){.method = "GET", .path = buf_text(&path)});
    int turn = remote_wait(g, call, e);
    if (turn != 0)
        return turn;
    return call->status == 200 ? remote_take_session(g, call, e) : remote_call_failed(call, e);
}

static void after(void *ctx);

struct remote *remote_new(struct guest *g)
{
    struct remote *r = g->remote = xcalloc(1, sizeof(*r));

    r->guest = g;
    r->client = g->owner->client;
    r->hook = (struct client_hook){.after = after, .ctx = r};
    return r;
}

void remote_attend(struct remote *r)
{
    r->touched_ms = clock_now_ms();
    client_hook_on(r->client, &r->hook);
    if (r->keep_ms)
        client_wake(r->client, (int)r->keep_ms);
}

static int remote_open(struct guest *g, struct err *e)
{
    struct remote *r = remote_new(g);
    uint64_t output;

    int turn = g->owner->wish.session ? join(g, e) : create(g, false, e);
    if (turn != 0)
        return turn;
    /* The server does not wait for a slow reader of its stream, but leaves things out. So we read at once,
     * whatever becomes of our stdout: that much the cell may print. */
    output = g->limits.output < (1u << 30) ? g->limits.output : 1u << 30;
    g->owner->out.waiting_max += (size_t)output;
    remote_attend(r);
    return 0;
}

/* ---- closing ---- */

static bool may_wait(const struct owner *o)
{
    return clock_now_ms() < o->leave_by_ms;
}

static void wait_no_longer(struct owner *o, int ms)
{
    int64_t by_ms = clock_now_ms() + ms;

    if (!may_wait(o) || by_ms < o->leave_by_ms)
        o->leave_by_ms = by_ms;
}

static void remote_leave(struct guest *g)
{
    struct remote *r = g->remote;
    bool busy = r->call != NULL;

    client_hook_off(r->client, &r->hook);
    remote_forget_cell(r);
    remote_call_done(&r->touch);
    if (!r->id[0] || r->ended || g->owner->wish.keep)
        return;
    r->farewell = remote_call(r, "DELETE", "", NULL);
    r->ended = true;
    g->owner->seen = 0; /* what brought us here */
    wait_no_longer(g->owner, busy || g->owner->lost ? LEAVE_MS : CLOSE_MS);
}

static void remote_close(struct guest *g)
{
    struct remote *r = g->remote;
    struct owner *o = g->owner;

    remote_leave(g);
    while (r->farewell && !r->farewell->over && may_wait(o)) {
        owner_wait(o, &r->farewell->over, (int)(o->leave_by_ms - clock_now_ms()));
        if (o->seen & (TURN_SIGINT | TURN_STOP)) /* what is on its way may still get there */
            wait_no_longer(o, LEAVE_MS);
        o->seen = 0;
    }
    remote_call_done(&r->farewell);
    free(r->environment);
    free(r);
    g->remote = NULL;
}

/* ---- in between ---- */

/* A person who thinks is not idle: the session is touched, by a question that does nothing. */
static void keep_alive(struct remote *r, int64_t now_ms)
{
    if (r->touch && r->touch->over) {
        r->ended = r->ended || remote_is_gone(r->touch);
        remote_call_done(&r->touch);
    }
    if (!r->keep_ms || r->call || r->touch || r->ended || now_ms - r->touched_ms < r->keep_ms)
        return;
    r->touched_ms = now_ms;
    r->touch = remote_call(r, "POST", "/check", xstrdup("{\"code\":\"\"}"));
}

static void after(void *ctx)
{
    struct remote *r = ctx;
    int64_t now_ms = clock_now_ms(), next_ms = INT64_MAX;

    remote_tend_cell(r, now_ms);
    keep_alive(r, now_ms);
    if (r->keep_ms && !r->call && !r->ended)
        next_ms = r->touched_ms + r->keep_ms;
    if (r->again_ms)
        next_ms = r->again_ms;
    int64_t left_ms = next_ms - now_ms;
    if (next_ms != INT64_MAX)
        client_wake(r->client, left_ms < 1 ? 1 : (int)left_ms + 1);
}

static bool remote_ended(const struct guest *g)
{
    return g->remote->ended;
}

/* "    ", as the next line may begin; NULL: it is something else. */
static char *blanks_of(const json_t *j)
{
    const char *text = json_string_value(j);

    return text && strlen(text) <= INDENT_MAX && text[strspn(text, " \t")] == '\0' ? xstrdup(text)
                                                                                   : NULL;
}

static int take_check(const struct call *call, int *ret_state, char **ret_indent, struct err *e)
{
    static const char *const names[] = {[CHECK_COMPLETE] = "complete",
                                        [CHECK_INCOMPLETE] = "incomplete",
                                        [CHECK_INVALID] = "invalid"};
    json_t *j = json_loadb(call->body.data ? call->body.data : "", call->body.len, 0, NULL);
    char *indent = blanks_of(json_object_get(j, "indent"));
    int state = CHECK_INVALID;

    while (state >= 0 && strcmp(names[state], remote_text(j, "status")) != 0)
        state--;
    json_decref(j);
    if (!indent || state < 0) {
        free(indent);
        return err_set(e, 0, "the server's answer cannot be understood");
    }
    *ret_state = state;
    *ret_indent = indent;
    return 0;
}

static int remote_check(struct guest *g, const char *code, size_t len, int *ret_state,
                        char **ret_indent, struct err *e)
{
    struct remote *r = g->remote;
    json_t *j = json_object();

    json_object_set_new(j, "code", json_stringn(code, len)); /* NULL where it is not UTF-8 */
    cleanup_call struct call *call = remote_call(r, "POST", "/check", remote_dump(j));
    owner_wait(g->owner, &call->over, CHECK_MS);
    r->touched_ms = clock_now_ms();
    if (!call->over)
        return err_set(e, ETIMEDOUT, "the server does not answer");
    if (call->status == 200)
        return take_check(call, ret_state, ret_indent, e);
    r->ended = r->ended || remote_is_gone(call);
    return remote_call_failed(call, e);
}

/* ---- files ---- */

static struct call *file_call(struct remote *r, const char *name, struct call_spec *spec)
{
    cleanup_buf struct buf path = {0};

    buf_add_fmt(&path, "/v1/sessions/%s/files/", r->id);
    call_add_path(&path, name);
    spec->path = buf_text(&path);
    return call_begin(r->client, spec);
}

static int remote_put(struct guest *g, const char *name, int fd, struct err *e)
{
    struct call_spec spec = {.method = "PUT", .upload = true, .upload_fd = fd};
    cleanup_call struct call *call = file_call(g->remote, name, &spec);
    int turn = remote_wait(g, call, e);

    if (turn != 0 || call->status == 200 || call->status == 201)
        return turn;
    remote_call_failed(call, e);
    e->code = call->status == 413 ? ENOSPC : 0;
    return -1;
}

static int open_scratch(int dir)
{
    int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : memfd_create("retort", MFD_CLOEXEC); /* not every file system can */
}

struct fetch {
    struct guest *guest;
    int fd;
};

static int on_contents(void *ctx, const char *data, size_t len, struct err *e)
{
    struct fetch *f = ctx;

    if (fd_write_all(f->fd, data, len) == 0)
        return 0;
    f->guest->failed = true;
    return err_set(e, errno, "cannot write it");
}

static int remote_get(struct guest *g, const char *path, int scratch, uint64_t max, int *ret_fd,
                      struct err *e)
{
    cleanup_fd int fd = open_scratch(scratch);
    struct fetch f = {g, fd};
    struct call_spec spec = {.method = "GET",
                             .accept = "*/*",
                             .piece = on_contents,
                             .bounded = true,
                             .max = max,
                             .ctx = &f};

    g->failed = fd < 0;
    if (fd < 0)
        return err_set(e, errno, "cannot make a file");
    if (g->remote->ended)
        return err_set(e, 0, "the box is gone, with its interpreter");
    if (path_check(path, strlen(path)))
        return err_set(e, 0, "not a name for a file");
    cleanup_call struct call *call = file_call(g->remote, path, &spec);
    int turn = remote_wait(g, call, e);
    if (turn != 0)
        return turn;
    if (call->status != 200)
        return remote_call_failed(call, e);
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_set(e, errno, "cannot read it again");
    *ret_fd = fd_steal(&fd);
    return 0;
}

/* One page of the list. *ret_next is where the next begins, or NULL. */
static int take_page(const struct call *call, file_listed *entry, void *ctx, char **ret_next,
                     struct err *e)
{
    json_t *j = json_loadb(call->body.data ? call->body.data : "", call->body.len, 0, NULL), *file;
    const json_t *data = json_object_get(j, "data");
    const char *next = json_string_value(json_object_get(j, "next"));
    bool good = json_is_array(data);
    size_t i;

    json_array_foreach(data, i, file)
    {
        const char *path = remote_text(file, "path");
        json_int_t size = json_integer_value(json_object_get(file, "size"));
        int64_t modified_ms = 0;
        good = good && !path_check(path, strlen(path)) && size >= 0;
        clock_from_text(remote_text(file, "modified_at"), &modified_ms);
        if (good)
            entry(ctx, path, (uint64_t)size, (uint64_t)modified_ms * 1000000);
    }
    *ret_next = good && next ? xstrdup(next) : NULL;
    json_decref(j);
    return good ? 0 : err_set(e, 0, "the server's list of files cannot be understood");
}

static int remote_list(struct guest *g, file_listed *entry, void *ctx, struct err *e)
{
    cleanup_free char *after = NULL;

    for (unsigned page = 0; page == 0 || (after && page < LIST_PAGES); page++) {
        cleanup_buf struct buf what = {0};
        buf_add_fmt(&what, "/files?limit=%d", LIST_PAGE);
        if (after) {
            buf_add_text(&what, "&after=");
            call_add_path(&what, after);
        }
        free(after);
        after = NULL;
        cleanup_call struct call *call = remote_call(g->remote, "GET", buf_text(&what), NULL);
        int turn = remote_wait(g, call, e);
        if (turn != 0)
            return turn;
        if (call->status != 200)
            return remote_call_failed(call, e);
        if (take_page(call, entry, ctx, &after, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- what is in it ---- */

/* Of the environment with this name, or of the first. NULL: there is none. */
static char *description_of(const struct call *call, const char *name)
{
    json_t *j = json_loadb(call->body.data ? call->body.data : "", call->body.len, 0, NULL), *one;
    char *found = NULL;
    size_t i;

    json_array_foreach(json_object_get(j, "data"), i, one)
    {
        const char *text = json_string_value(json_object_get(one, "description"));
        if (text && !found && (!name || strcmp(name, remote_text(one, "name")) == 0))
            found = xstrdup(text);
    }
    json_decref(j);
    return found;
}

static int remote_describe(struct guest *g, char **ret, struct err *e)
{
    struct remote *r = g->remote;
    cleanup_call struct call *call =
        call_begin(r->client, &(struct call_spec){.method = "GET", .path = "/v1/environments"});
    int turn = remote_wait(g, call, e);

    if (turn != 0)
        return turn;
    if (call->status != 200)
        return remote_call_failed(call, e);
    *ret = description_of(call, r->environment);
    return *ret ? 0 : err_set(e, 0, "the server does not say what is in its environment");
}

const char *guest_id(const struct guest *g)
{
    return g->remote ? g->remote->id : NULL;
}

const struct guest_ways guest_remote = {
    .open = remote_open,
    .fork = remote_fork,
    .leave = remote_leave,
    .close = remote_close,
    .start = remote_start,
    .interrupt = remote_interrupt,
    .ended = remote_ended,
    .put = remote_put,
    .get = remote_get,
    .list = remote_list,
    .describe = remote_describe,
    .check = remote_check,
    .points = remote_points,
    .rollback = remote_rollback,
};
