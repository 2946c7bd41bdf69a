/* repl_json: a session driven by another program, a JSON object a line each way.
 *
 *     ◀ {"code":"x = 1"}                 a cell; "timeout" may give its seconds
 *     ◀ {"interrupt":true}               stop the running cell; has no answer of its own
 *     ◀ {"checkpoints":true}             which states are kept
 *     ◀ {"rollback":3}                   what it was after cell 3
 *     ◀ {"fork":true}                    go on in a branch of now; with a number, of what it was after that cell
 *     ◀ {"branch":1}                     go on in that one; 1 is the first session
 *     ◀ {"branches":true}                which there are
 *     ▶ {"n":1,"status":"ok",…}          one answer for each cell, in their order
 *     ▶ {"checkpoints":[{"n":3,…},…]}    as the HTTP API has them
 *     ▶ {"restored_to":3}                it is that now
 *     ▶ {"branch":2,"current":true,"parent":{"branch":1,"n":3},"next":4}
 *                                        where it is now; "next" is the number of its next cell
 *     ▶ {"branches":[{"branch":1,…},…]}  the same for each
 *     ▶ {"error":{"code":…,"message":…}} for a line that is not a request, in its turn too
 *
 * Requests that come while a cell runs wait in a bounded queue. One that finds it full is refused at
 * once, out of its turn, with the code "queue_full". After a cell with "restored_to" the next one finds the
 * state after that cell, after one with "session_ended" a fresh box.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/branch.h"
#include "cli/cli.h"
#include "cli/program.h"
#include "cli/repl.h"
#include "session/cell_json.h"
#include "session/point_json.h"

#define LINE_MAX_BYTES (32u << 20) /* a program of 16 MiB, escaped */
#define QUEUE 64

struct request {
    enum { ASK_CELL, ASK_POINTS, ASK_ROLLBACK, ASK_FORK, ASK_BRANCH, ASK_BRANCHES, ANSWER } kind;
    char *code;
    size_t len;
    uint64_t timeout_ms;
    bool now;     /* a fork of that; else after cell */
    uint32_t to;  /* a rollback's, a fork's; or the branch's number */
    char *answer; /* only this is to be given */
};

struct talk {
    struct repl *repl;
    struct buf in;
    bool skipping; /* the rest of a line that was too long */
    bool ended;    /* of stdin */
    bool running;
    struct request queue[QUEUE];
    unsigned first, n;
};

/* ---- answers ---- */

static void answer(struct talk *t, const char *text)
{
    outlet_line(&t->repl->owner.out, 1, text);
}

static char *error_text(const char *code, const char *message)
{
    json_t *json = json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", message);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    assert_that(text);
    json_decref(json);
    return text;
}

static void answer_json(struct talk *t, json_t *json)
{
    char *text = json_dumps(json, CELL_JSON_FLAGS);

    assert_that(text);
    answer(t, text);
    free(text);
    json_decref(json);
}

static void answer_error(struct talk *t, const char *code, const char *message)
{
    char *text = error_text(code, message);

    answer(t, text);
    free(text);
}

static void answer_cell(struct talk *t, const struct cell *c)
{
    json_t *json = cell_json(c, t->repl->options.summary);

    if (c->session_ended)
        json_object_set_new(json, "session_ended", json_true());
    answer_json(t, json);
}

/* ---- requests ---- */

static void enqueue(struct talk *t, struct request q)
{
    if (t->n == QUEUE) {
        answer_error(t, "queue_full", "too many cells are waiting: read the answers first");
        free(q.code);
        free(q.answer);
        return;
    }
    t->queue[(t->first + t->n++) % QUEUE] = q;
}

static void refuse(struct talk *t, const char *code, const char *message)
{
    enqueue(t, (struct request){.kind = ANSWER, .answer = error_text(code, message)});
}

static int parse_timeout(json_t *json, uint64_t *ret, struct err *e)
{
    struct limits l;
    char number[64] = "";

    if (!json || json_is_null(json)) {
        *ret = 0;
        return 0;
    }
    if (json_is_number(json))
        snprintf(number, sizeof(number), "%.9g", json_number_value(json));
    else if (!json_is_string(json))
        return err_set(e, 0, "timeout: give seconds as a number");
    if (limits_set(&l, "timeout", json_is_string(json) ? json_string_value(json) : number, e) < 0)
        return -1;
    *ret = l.timeout_ms;
    return 0;
}

static void cell_request(struct talk *t, json_t *json)
{
    json_t *code = json_object_get(json, "code");
    struct request q = {.len = json_string_length(code)};
    struct err e;

    if (!json_is_string(code)) {
        refuse(t, "invalid_request",
               "a request is {\"code\":\"…\"}, {\"interrupt\":true}, {\"checkpoints\":true}, "
               "{\"rollback\":N}, {\"fork\":true}, {\"fork\":N}, {\"branch\":K} or "
               "{\"branches\":true}");
    } else if (q.len > PROGRAM_MAX) {
        refuse(t, "too_large", "code may have at most 16 MiB");
    } else if (parse_timeout(json_object_get(json, "timeout"), &q.timeout_ms, &e) < 0) {
        refuse(t, "invalid_request", e.text);
    } else {
        q.code = xcalloc(1, q.len + 1);
        memcpy(q.code, json_string_value(code), q.len);
        enqueue(t, q);
    }
}

/* One that has a number; `wrong` says what it is the number of. */
static void number_request(struct talk *t, struct request q, const json_t *to, const char *wrong)
{
    json_int_t n = json_integer_value(to);

    q.to = (uint32_t)n;
    if (!q.now && (!json_is_integer(to) || n < 0 || n >= UINT32_MAX))
        refuse(t, "invalid_request", wrong);
    else
        enqueue(t, q);
}

static void take_line(struct talk *t, const char *line, size_t len)
{
    const json_t *value;
    json_error_t why;
    char message[sizeof(why.text) + 40];

    if (strspn(line, " \t\r") >= len)
        return;
    json_t *json =
        json_loadb(line, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!json) {
        snprintf(message, sizeof(message), "this line is not JSON: %s", why.text);
        refuse(t, "invalid_json", message);
        return;
    }
    if (json_is_true(json_object_get(json, "interrupt")))
        guest_interrupt(&t->repl->branch->guest); /* at once, past the queue */
    else if (json_is_true(json_object_get(json, "checkpoints")))
        enqueue(t, (struct request){.kind = ASK_POINTS});
    else if (json_is_true(json_object_get(json, "branches")))
        enqueue(t, (struct request){.kind = ASK_BRANCHES});
    else if ((value = json_object_get(json, "rollback")))
        number_request(t, (struct request){.kind = ASK_ROLLBACK}, value,
                       "\"rollback\" is the number of a cell");
    else if ((value = json_object_get(json, "fork")))
        number_request(t, (struct request){.kind = ASK_FORK, .now = json_is_true(value)}, value,
                       "\"fork\" is true or the number of a cell");
    else if ((value = json_object_get(json, "branch")))
        number_request(t, (struct request){.kind = ASK_BRANCH}, value,
                       "\"branch\" is the number of a branch");
    else
        cell_request(t, json);
    json_decref(json);
}

/* ---- states that are kept ---- */

static void add_point(void *ctx, const struct session_point *p)
{
    json_array_append_new(ctx, point_json(p));
}

static int list_points(struct talk *t, struct err *e)
{
    json_t *list = json_array();

    if (guest_points(&t->repl->branch->guest, add_point, list, e) == 0) {
        answer_json(t, json_pack("{s:o}", "checkpoints", list));
        return 0;
    }
    json_decref(list);
    if (t->repl->owner.lost)
        return -1;
    answer_error(t, "no_answer", e->text);
    return 0;
}

static int go_back(struct talk *t, uint32_t to, struct err *e)
{
    int turn = guest_rollback(&t->repl->branch->guest, to, e);

    if (turn == 0)
        answer_json(t, json_pack("{s:I}", "restored_to", (json_int_t)to));
    if (turn >= 0 || t->repl->owner.lost)
        return turn;
    answer_error(t, e->code == ENOENT ? "no_checkpoint" : "session_ended", e->text);
    return 0;
}

/* ---- branches ---- */

static json_t *branch_json(const struct repl *r, const struct branch *b)
{
    json_t *parent =
        b->of ? json_pack("{s:I,s:I}", "branch", (json_int_t)b->of, "n", (json_int_t)b->after)
              : json_null();

    return json_pack("{s:I,s:b,s:o,s:I}", "branch", (json_int_t)branch_number(r, b), "current",
                     b == r->branch, "parent", parent, "next", (json_int_t)b->guest.next);
}

static void list_branches(struct talk *t)
{
    const struct repl *r = t->repl;
    json_t *list = json_array();

    for (unsigned i = 0; i < r->n_branches; i++)
        json_array_append_new(list, branch_json(r, &r->branches[i]));
    answer_json(t, json_pack("{s:o}", "branches", list));
}

/* A branch was made, or gone to. */
static int in_branch(struct talk *t, int turn, const struct err *e)
{
    if (turn == 0)
        answer_json(t, branch_json(t->repl, t->repl->branch));
    if (turn >= 0 || t->repl->owner.lost)
        return turn;
    answer_error(t, e->code == ENOENT ? "no_checkpoint" : "no_branch", e->text);
    return 0;
}

/* ---- the loop ---- */

/* What is no cell. */
static int do_request(struct talk *t, const struct request *q, struct err *e)
{
    struct repl *r = t->repl;

    switch (q->kind) {
    case ASK_POINTS:
        return list_points(t, e);
    case ASK_ROLLBACK:
        return go_back(t, q->to, e);
    case ASK_FORK:
        return in_branch(t, branch_make(r, q->now ? r->branch->guest.at : q->to, e), e);
    case ASK_BRANCH:
        return in_branch(t, branch_enter(r, q->to, e), e);
    default:
        list_branches(t);
        return 0;
    }
}

static int take_up(struct talk *t, const struct request *q, struct err *e)
{
    struct repl *r = t->repl;
    int turn = 0;

    if (q->kind == ANSWER) {
        answer(t, q->answer);
        return 0;
    }
    if (guest_ended(&r->branch->guest))
        turn = repl_fresh(r, e);
    if (turn != 0)
        return turn;
    if (q->kind != ASK_CELL)
        return do_request(t, q, e);
    turn = guest_start(&r->branch->guest, q->code, q->len, q->timeout_ms, e);
    t->running = turn == 0;
    return turn;
}

/* Do what is next in the queue. 0; a set of enum turn; or -1. */
static int pump(struct talk *t, struct err *e)
{
    while (!t->running && t->n > 0) {
        struct request q = t->queue[t->first];
        t->first = (t->first + 1) % QUEUE;
        t->n--;
        int turn = take_up(t, &q, e);
        free(q.code);
        free(q.answer);
        if (turn != 0)
            return turn;
    }
    return 0;
}

/* Read once, and take the lines that are whole. */
static int take_input(struct talk *t, struct err *e)
{
    ssize_t n = read(STDIN_FILENO, buf_room(&t->in, 64 << 10), 64 << 10);
    size_t from = t->in.len, start = 0;

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n <= 0) {
        t->ended = true;
        if (t->in.len > 0 && t->in.data[t->in.len - 1] != '\n')
            buf_add(&t->in, "\n", 1);
    } else {
        t->in.len += (size_t)n;
    }
    for (size_t i = from; i < t->in.len; i++) {
        if (t->in.data[i] != '\n')
            continue;
        t->in.data[i] = '\0';
        if (!t->skipping)
            take_line(t, t->in.data + start, i - start);
        t->skipping = false;
        start = i + 1;
        int turn = pump(t, e);
        if (turn != 0)
            return turn;
    }
    buf_drop(&t->in, start);
    if (t->in.len > LINE_MAX_BYTES) {
        refuse(t, "too_large", "a line may have at most 32 MiB");
        t->skipping = true;
    }
    if (t->skipping)
        t->in.len = 0;
    return 0;
}

static void finish_cell(struct talk *t)
{
    struct repl *r = t->repl;
    struct cell *c = guest_take(&r->branch->guest);

    t->running = false;
    show_end(&r->show, c);
    show_files(&r->show, &r->branch->guest, c);
    answer_cell(t, c);
    cell_free(c);
}

/* Ctrl-C stops the cell, or the repl where there is none. */
static int on_turn(struct talk *t, int turn)
{
    if (turn & TURN_CLOSED)
        return EXIT_PIPE;
    if (turn & TURN_STOP)
        return EXIT_TERMINATED;
    if (turn & TURN_SIGINT && !t->running)
        return EXIT_INTERRUPTED;
    if (turn & TURN_SIGINT)
        guest_interrupt(&t->repl->branch->guest);
    return 0;
}

static int loop(struct talk *t, struct err *e)
{
    struct repl *r = t->repl;

    for (;;) {
        int turn = pump(t, e);
        if (turn == 0 && t->ended && !t->running)
            return 0;
        if (turn == 0)
            turn = owner_turn(&r->owner, t->ended ? -1 : STDIN_FILENO, e);
        if (turn > 0 && turn & TURN_INPUT) {
            int more = take_input(t, e);
            turn = more < 0 ? -1 : turn | more;
        }
        if (turn < 0)
            return -1;
        int status = on_turn(t, turn);
        if (status)
            return status;
        if (r->branch->guest.cell)
            finish_cell(t);
    }
}

int repl_json(struct repl *r, struct err *e)
{
    struct talk t = {.repl = r};
    int status = loop(&t, e);

    for (; t.n > 0; t.n--, t.first = (t.first + 1) % QUEUE) {
        free(t.queue[t.first].code);
        free(t.queue[t.first].answer);
    }
    buf_done(&t.in);
    return status;
}
