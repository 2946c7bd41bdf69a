/* calls_run: one cell in a fresh box, which is gone afterwards.
 *
 *     asked ──a turn is free──▶ box ──▶ files, one by one ──▶ cell ──▶ answered, box ended
 *
 * Only so many run at once; the others wait in order, and beyond a bound are refused. A run has no record: its
 * answer is all there is.
 */
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#include "gate/calls.h"
#include "gate/headers.h"

struct run {
    struct run *next;
    struct gate *gate;
    struct request *request;
    struct live *live; /* NULL: waits for its turn */
    struct limits limits;
    unsigned environment;
    uint64_t timeout_ms;
    unsigned summary, pictures;
    json_t *body;
    void *file; /* the member of "files" that is on its way; json_object_iter */
    struct upload upload;
    uint64_t body_held; /* as it came; in memory for as long as the run is */
    struct buf contents;
    size_t sent;
};

static struct run *waiting; /* oldest first */

static void run_free(struct run *w)
{
    upload_cancel(&w->upload);
    buf_done(&w->contents);
    json_decref(w->body);
    free(w);
}

static void unwait(struct run *w)
{
    for (struct run **at = &waiting; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            w->gate->n_waiting--;
            holder_remove(w->request->holder, w->limits.memory);
            return;
        }
}

static void on_abandoned(void *work)
{
    struct run *w = work;
    struct live *l = w->live;

    unwait(w);
    run_free(w);
    if (l) {
        l->run = NULL;
        live_end(l, "deleted");
    }
}

void run_ended(struct run *w, const char *reason)
{
    struct request *r = w->request;

    w->live->run = NULL;
    run_free(w);
    if (strcmp(reason, "crashed") == 0)
        reply_error(r, 410, "session_ended",
                    "the interpreter died before the cell began; files that are sent with a run "
                    "count as its memory");
    else
        reply_error(r, 410, "session_ended", "the run was ended before its cell began");
}

/* ---- its files ---- */

static json_t *files_of(const struct run *w)
{
    return json_object_get(w->body, "files");
}

static int decode(struct buf *ret, const char *text, size_t len)
{
    struct base64_decode_ctx ctx;
    size_t got = BASE64_DECODE_LENGTH(len);

    base64_decode_init(&ctx);
    if (!base64_decode_update(&ctx, &got, (uint8_t *)buf_room(ret, got + 1), len, text) ||
        !base64_decode_final(&ctx))
        return -1;
    ret->len += got;
    return 0;
}

static int check_files(struct request *r, json_t *files)
{
    const char *name;
    json_t *value;
    struct err e;

    if (!files || json_is_null(files))
        return 0;
    if (!json_is_object(files)) {
        reply_error(r, 400, "bad_request", "\"files\" must be an object of names and base64");
        return -1;
    }
    json_object_foreach(files, name, value)
    {
        cleanup_buf struct buf contents = {0};
        if (header_check_path(name, strlen(name), &e) < 0) {
            reply_error(r, 400, "bad_path", "%s", e.text);
            return -1;
        }
        if (!json_is_string(value) ||
            decode(&contents, json_string_value(value), json_string_length(value)) < 0) {
            reply_error(r, 400, "bad_request", "the file \"%.200s\" is not base64", name);
            return -1;
        }
    }
    return 0;
}

static void failed(struct run *w, const struct err *e)
{
    struct request *r = w->request;
    struct live *l = w->live;

    request_unwork(r);
    reply_file_failed(r, e, true);
    run_free(w);
    l->run = NULL;
    live_end(l, "deleted");
}

static void start_cell(struct run *w)
{
    struct request *r = w->request;
    struct live *l = w->live;
    const json_t *code = json_object_get(w->body, "code");

    l->run = NULL;
    request_unwork(r);
    const struct job_order o = {.kind = JOB_CELL,
                                .code = json_string_value(code),
                                .len = json_string_length(code),
                                .timeout_ms = w->timeout_ms,
                                .summary = w->summary,
                                .pictures = w->pictures};
    job_add(l, r, &o);
    run_free(w);
    if (!l->running) /* it could not be begun, and has been answered */
        live_end(l, "deleted");
}

static void next_file(struct run *w);

static void on_put(void *ctx, const struct err *e)
{
    struct run *w = ctx;

    if (e) {
        failed(w, e);
        return;
    }
    w->file = json_object_iter_next(files_of(w), w->file);
    next_file(w);
}

static void send_file(void *ctx)
{
    struct run *w = ctx;

    w->sent += upload_write(&w->upload, w->contents.data + w->sent, w->contents.len - w->sent);
    if (w->sent == w->contents.len)
        upload_finish(&w->upload);
}

static void next_file(struct run *w)
{
    struct err e;

    if (!w->file) {
        start_cell(w);
        return;
    }
    const json_t *value = json_object_iter_value(w->file);
    w->contents.len = w->sent = 0;
    decode(&w->contents, json_string_value(value), json_string_length(value));
    request_holds(w->request, &w->request->body_held, w->body_held + w->contents.cap);
    if (upload_start(&w->upload, w->live, json_object_iter_key(w->file), send_file, on_put, w, &e) <
        0)
        failed(w, &e);
    else
        send_file(w);
}

/* ---- its turn ---- */

static void on_opened(struct live *l, const struct err *e)
{
    struct run *w = l->run;

    if (!e) {
        w->file = json_object_iter(files_of(w));
        next_file(w);
        return;
    }
    log_line("run error=\"%s\"", e->text);
    struct request *r = w->request;
    request_unwork(r);
    reply_later(r, 503, 5, "no_box", "no box could be made: %s", e->text);
    run_free(w);
    l->run = NULL;
    live_end(l, "crashed");
}

static void begin(struct run *w)
{
    struct live *l = live_new(w->gate, w->request->holder, &w->limits, w->environment, NULL);

    l->once = true;
    l->opened = on_opened;
    l->run = w;
    w->live = l;
    w->gate->n_runs++;
    live_open(l);
}

/* Each takes the place of one that has ended, so that sessions never are more than there may be. */
void runs_next(struct gate *g)
{
    while (waiting && g->n_runs < g->config->max_runs && !g->draining && !g->stopping) {
        struct run *w = waiting;
        unwait(w);
        begin(w);
    }
}

/* One that waits will never run; who asked for it. */
static struct request *give_up(struct run *w)
{
    struct request *r = w->request;

    unwait(w);
    request_unwork(r);
    run_free(w);
    return r;
}

void runs_refuse(struct gate *g)
{
    (void)g;
    while (waiting)
        reply_later(give_up(waiting), 503, 5, "draining",
                    "the server is about to stop; try again soon");
}

void runs_refuse_of(const struct holder *h)
{
    struct run *next;

    for (struct run *w = waiting; w; w = next) {
        next = w->next;
        if (w->request->holder == h)
            reply_error(give_up(w), 401, "unauthorized", "this token was revoked");
    }
}

/* It counts as the session that it will be. */
static void wait_turn(struct run *w)
{
    struct run **at = &waiting;

    while (*at)
        at = &(*at)->next;
    *at = w;
    w->gate->n_waiting++;
    holder_add(w->request->holder, w->limits.memory);
}

void call_run(struct request *r)
{
    static const char *const members[] = {"code",        "files",   "limits",   "timeout",
                                          "environment", "summary", "pictures", NULL};
    struct gate *g = r->gate;
    json_t *body = ask_object(r, members);
    struct run w = {
        .gate = g, .request = r, .body = body, .body_held = r->body_held, .upload.fd = -1};
    const char *code;
    size_t len;

    if (!body)
        return;
    if (ask_code(r, body, &code, &len) < 0 ||
        ask_limits(r, json_object_get(body, "limits"), &w.limits) < 0 ||
        ask_timeout(r, json_object_get(body, "timeout"), g->config->max.timeout_ms, &w.timeout_ms) <
            0 ||
        ask_summary(r, json_object_get(body, "summary"), &w.summary) < 0 ||
        ask_pictures(r, json_object_get(body, "pictures"), &w.pictures) < 0 ||
        ask_environment(r, json_object_get(body, "environment"), &w.environment) < 0 ||
        check_files(r, json_object_get(body, "files")) < 0 || holder_begins_cell(r) < 0 ||
        ask_room(r, &w.limits) < 0) {
        json_decref(body);
        return;
    }
    if (g->n_runs >= g->config->max_runs && g->n_waiting >= g->config->max_waiting) {
        json_decref(body);
        reply_later(r, 503, 1, "busy", "%u runs are under way and %u wait; try again soon",
                    g->n_runs, g->n_waiting);
        return;
    }
    struct run *kept = xcalloc(1, sizeof(*kept));
    *kept = w;
    request_work(r, on_abandoned, kept);
    wait_turn(kept);
    runs_next(g);
}
