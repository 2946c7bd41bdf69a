/* agent: see agent.h. */
#include "agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/exchange.h"
#include "agent/prompt.h"
#include "agent/talk.h"
#include "base/clock.h"
#include "session/summary.h"
#include "session/words.h"

#define PICTURES_CELL 4u            /* of one cell, that the model sees */
#define PICTURE_BYTES (3750u << 10) /* providers take 5 MB in base64 */
#define TICK_MS 100
#define BY_THE_USER "stopped by the user"

struct agent {
    struct agent_options o;
    struct guest_view guest_view;
    struct exchange_view exchange_view;
    struct prompt prompt;
    char *system;
    bool system_tools; /* it speaks of the tool */
    struct request request;
    json_t *talk;
    bool called; /* the model has used the tool in this conversation */
    /* the question */
    struct agent_answer *answer;
    int64_t began_ms;
    unsigned failed_in_a_row;
};

/* How a question goes on. */
enum course { GO_ON, IS_OVER };

void agent_bounds_default(struct agent_bounds *b)
{
    *b = (struct agent_bounds){.attempts = 5, .cells = 50, .wall_ms = 600000};
}

void agent_answer_done(struct agent_answer *a)
{
    free(a->text);
    free(a->why);
    *a = (struct agent_answer){0};
}

/* ---- who looks on ---- */

static void on_output(void *ctx, enum output_kind kind, const char *text, size_t len)
{
    const struct agent *a = ctx;

    a->o.view->output(a->o.view->ctx, kind, text, len);
}

static void on_display(void *ctx, const struct output *o)
{
    const struct agent *a = ctx;

    a->o.view->display(a->o.view->ctx, o);
}

static void on_text(void *ctx, const char *text, size_t len)
{
    const struct agent *a = ctx;

    a->o.view->text(a->o.view->ctx, text, len);
}

static void on_code(void *ctx, unsigned call, const char *text, size_t len)
{
    const struct agent *a = ctx;

    a->o.view->code(a->o.view->ctx, call, text, len);
}

static void ready_system(struct agent *a)
{
    bool tools = a->o.model->tools;

    if (!a->system || a->system_tools != tools) {
        free(a->system);
        a->system = prompt_text(&a->prompt, &a->o.guest->limits, tools);
        a->system_tools = tools;
    }
    a->request = (struct request){.system = a->system, .talk = a->talk};
}

static void on_again(void *ctx, const char *why, unsigned seconds)
{
    struct agent *a = ctx;

    ready_system(a); /* it may turn out now that it has no tools */
    a->o.view->again(a->o.view->ctx, why, seconds);
}

static void on_tick(void *ctx)
{
    const struct agent *a = ctx;

    a->o.view->tick(a->o.view->ctx);
}

static void note(const struct agent *a, const char *sentence)
{
    a->o.view->note(a->o.view->ctx, sentence);
}

/* ---- life ---- */

struct agent *agent_new(const struct agent_options *o)
{
    struct agent *a = xcalloc(1, sizeof(*a));

    a->o = *o;
    a->guest_view = (struct guest_view){on_output, on_display, a};
    a->exchange_view = (struct exchange_view){
        .reply = {on_text, on_code, a}, .again = on_again, .tick = on_tick, .ctx = a};
    a->prompt.environment = o->environment;
    a->prompt.retries = o->clean_retries;
    a->talk = json_array();
    return a;
}

void agent_free(struct agent *a)
{
    if (!a)
        return;
    prompt_done(&a->prompt);
    free(a->system);
    json_decref(a->talk);
    free(a);
}

void agent_look_again(struct agent *a)
{
    free(a->system);
    a->system = NULL;
}

/* ---- the conversation ---- */

static const char *text_of(const json_t *j, const char *member)
{
    const char *text = json_string_value(json_object_get(j, member));
    return text ? text : "";
}

static bool is_role(const json_t *message, const char *role)
{
    return strcmp(text_of(message, "role"), role) == 0;
}

static const json_t *last(const struct agent *a)
{
    size_t n = json_array_size(a->talk);

    return n ? json_array_get(a->talk, n - 1) : NULL;
}

static const json_t *open_calls(const struct agent *a)
{
    const json_t *m = last(a), *calls = json_object_get(m, "calls");

    return is_role(m, "model") && json_array_size(calls) > 0 ? calls : NULL;
}

/* Takes it over. */
static void add(struct agent *a, json_t *message)
{
    a->called = a->called || json_array_size(json_object_get(message, "calls")) > 0;
    if (a->o.added)
        a->o.added(a->o.ctx, message);
    json_array_append_new(a->talk, message);
}

/* Something ended the answer before its end. What was called and did not run gets a result, and the model the
 * last word: so the conversation can go on. */
static void close_talk(struct agent *a, const char *why)
{
    const json_t *calls = open_calls(a), *call;
    cleanup_free char *text = xasprintf("(%s)", why);
    size_t i;

    if (calls) {
        json_t *results = talk_results();
        json_array_foreach(calls, i, call)
        {
            talk_add_result(results, text_of(call, "id"), text, true, NULL);
        }
        add(a, results);
    }
    if (!is_role(last(a), "model"))
        add(a, json_pack("{s:s,s:s}", "role", "model", "text", text));
}

static bool is_message(const json_t *m, const json_t *before)
{
    const json_t *calls = json_object_get(m, "calls"), *results = json_object_get(m, "results");
    const json_t *called = json_object_get(before, "calls");

    if ((json_array_size(called) > 0) != is_role(m, "results"))
        return false; /* results come behind calls, and nothing else does */
    if (is_role(m, "results"))
        return json_array_size(results) == json_array_size(called);
    return (is_role(m, "user") || is_role(m, "model")) &&
           json_is_string(json_object_get(m, "text")) && (!calls || json_is_array(calls));
}

int agent_resume(struct agent *a, const json_t *talk, struct err *e)
{
    const json_t *m, *before = NULL;
    size_t i;

    json_array_foreach(talk, i, m)
    {
        if (!is_message(m, before))
            return err_set(e, 0, "message %zu of the conversation is not as it should be", i + 1);
        before = m;
    }
    json_array_clear(a->talk);
    json_array_foreach(talk, i, m)
    {
        a->called = a->called || json_array_size(json_object_get(m, "calls")) > 0;
        json_array_append(a->talk, (json_t *)m);
    }
    return 0;
}

bool agent_is_asked(const struct agent *a)
{
    return json_array_size(a->talk) > 0 && (!is_role(last(a), "model") || open_calls(a));
}

/* ---- bounds ---- */

static double cost_of(const struct agent *a)
{
    const struct model *m = a->o.model;

    return ((double)a->answer->tokens_in * m->price_in +
            (double)a->answer->tokens_out * m->price_out) /
           1e6;
}

static int64_t deadline_ms(const struct agent *a)
{
    return a->o.bounds.wall_ms ? a->began_ms + (int64_t)a->o.bounds.wall_ms : 0;
}

/* It is over, and this is why; `why` is taken over. */
static enum course end(struct agent *a, enum agent_end how, char *why)
{
    a->answer->end = how;
    free(a->answer->why);
    a->answer->why = why;
    return IS_OVER;
}

/* The same by Ctrl-C, as what has a course and a turn tells it. */
static int stop(struct agent *a)
{
    end(a, AGENT_STOPPED, xstrdup(BY_THE_USER));
    return 0;
}

static enum course out_of_time(struct agent *a)
{
    return end(a, AGENT_BOUND,
               xasprintf("stopped: there was no answer within %g s (--max-time)",
                         (double)a->o.bounds.wall_ms / 1000));
}

static enum course check_bounds(struct agent *a)
{
    const struct agent_bounds *b = &a->o.bounds;
    const struct agent_answer *so_far = a->answer;

    if (b->attempts && a->failed_in_a_row >= b->attempts)
        return end(a, AGENT_BOUND,
                   xasprintf("stopped after %u attempts that failed in a row (--attempts)",
                             a->failed_in_a_row));
    if (b->wall_ms && clock_now_ms() >= deadline_ms(a))
        return out_of_time(a);
    if (b->tokens && so_far->tokens_in + so_far->tokens_out >= b->tokens)
        return end(a, AGENT_BOUND,
                   xasprintf("stopped after %llu tokens (--max-tokens)",
                             (unsigned long long)(so_far->tokens_in + so_far->tokens_out)));
    if (b->cost > 0 && so_far->cost >= b->cost)
        return end(a, AGENT_BOUND, xasprintf("stopped at a cost of %g (--max-cost)", so_far->cost));
    return GO_ON;
}

/* ---- cells ---- */

/* What the model is to know of it. Our words are outside of the marks, the guest's between them. */
static char *result_text(const struct cell *c, unsigned budget)
{
    cleanup_free char *summary = cell_summary(c, budget);
    struct buf b = {0};
    char memory[WORDS_SIZE];

    buf_add_fmt(&b, "cell %u: %s, %.1f s, %s\n", c->n, cell_status_name(c->status),
                c->receipt.wall_ms / 1000, words_size(c->receipt.peak_memory, memory));
    prompt_add_data(&b, summary, strlen(summary));
    if (c->undone)
        buf_add_text(&b, "The cell was undone: variables and files are as they were before it.\n");
    else if (c->session_ended)
        buf_add_text(&b, "The interpreter is gone with it: a fresh one has none of the variables "
                         "and files.\n");
    buf_add(&b, "", 1);
    return buf_steal(&b);
}

static json_t *pictures_of(const struct cell *c)
{
    json_t *pictures = json_array();

    for (unsigned i = 0; i < c->n_outputs; i++) {
        const struct output *o = &c->outputs[i];
        for (unsigned k = 0; k < o->n_parts; k++) {
            const struct mime_part *p = &o->parts[k];
            bool picture = strcmp(p->type, "image/png") == 0 || strcmp(p->type, "image/jpeg") == 0;
            if (picture && p->len <= PICTURE_BYTES && json_array_size(pictures) < PICTURES_CELL)
                json_array_append_new(pictures, talk_picture(p->type, p->data, p->len));
        }
    }
    return pictures;
}

/* So long at most, as the session's limit and the question's leave. */
static uint64_t cell_time_ms(const struct agent *a)
{
    uint64_t limit = a->o.guest->limits.timeout_ms;
    int64_t left = a->o.bounds.wall_ms ? deadline_ms(a) - clock_now_ms() : 0;

    if (!a->o.bounds.wall_ms || (limit != LIMIT_NONE && (int64_t)limit <= left))
        return 0;
    return left > 1 ? (uint64_t)left : 1;
}

/* 0 when the cell is finished; a set of enum turn: leave; or -1. A second Ctrl-C ends the answer: then the cell is
 * waited for, which it does not have long for. */
static int wait_for_cell(struct agent *a, bool *ret_stopped, struct err *e)
{
    unsigned times = 0;

    a->o.owner->tick_ms = TICK_MS;
    while (!a->o.guest->cell) {
        int turn = owner_turn(a->o.owner, -1, e);
        if (turn < 0 || turn & (TURN_STOP | TURN_CLOSED))
            return turn;
        if (turn & TURN_SIGINT && ++times == 1)
            guest_interrupt(a->o.guest);
        if (turn & TURN_TICK)
            a->o.view->tick(a->o.view->ctx);
    }
    *ret_stopped = times > 1;
    return 0;
}

/* The box is gone with its interpreter: another takes its place, and is empty. */
static int fresh_guest(struct agent *a, struct err *e)
{
    struct guest *g = a->o.guest;
    const struct limits limits = g->limits;

    note(a, "the session is lost with its interpreter; going on in a fresh one");
    a->o.owner->wish.session = NULL;
    guest_close(g);
    int turn = guest_open(g, a->o.owner, &limits, &a->guest_view, e);
    g->undo = a->o.clean_retries;
    return turn;
}

/* One cell; its result is added. */
static int run_cell(struct agent *a, const char *code, json_t *results, const char *id,
                    bool *ret_stopped, struct err *e)
{
    struct guest *g = a->o.guest;
    int turn = guest_ended(g) ? fresh_guest(a, e) : 0;

    if (turn != 0)
        return turn;
    a->o.view->running(a->o.view->ctx, code);
    if (guest_start(g, code, strlen(code), cell_time_ms(a), e) < 0)
        return -1;
    turn = wait_for_cell(a, ret_stopped, e);
    if (turn != 0)
        return turn;
    struct cell *c = guest_take(g);
    a->answer->cells++;
    bool failed = c->status != CELL_OK;
    a->failed_in_a_row = failed ? a->failed_in_a_row + 1 : 0;
    a->answer->failed += failed;
    a->o.view->ran(a->o.view->ctx, c);
    if (a->o.ran)
        a->o.ran(a->o.ctx, c);
    cleanup_free char *text = result_text(c, a->o.summary);
    talk_add_result(results, id, text, failed, pictures_of(c));
    cell_free(c);
    return 0;
}

/* A call that cannot be run: the model is told, and it counts as an attempt. */
static void refuse_call(struct agent *a, json_t *results, const char *id, const char *why)
{
    a->failed_in_a_row++;
    note(a, why);
    talk_add_result(results, id, why, true, NULL);
}

static int run_call(struct agent *a, const json_t *call, json_t *results, bool *ret_stopped,
                    struct err *e)
{
    const char *id = text_of(call, "id"), *arguments = text_of(call, "arguments");
    struct err why;

    if (strcmp(text_of(call, "name"), TOOL_NAME) != 0) {
        refuse_call(a, results, id, "There is no such tool: the only one is " TOOL_NAME ".");
        return 0;
    }
    cleanup_free char *code = call_code(arguments, strlen(arguments), &why);
    if (!code) {
        refuse_call(a, results, id, why.text);
        return 0;
    }
    return run_cell(a, code, results, id, ret_stopped, e);
}

static bool has_enough_cells(const struct agent *a)
{
    return a->o.bounds.cells && a->answer->cells >= a->o.bounds.cells;
}

/* Why the next call is not run; NULL: it is. */
static const char *hindrance(const struct agent *a, unsigned failed_before, bool stopped)
{
    if (stopped)
        return "Not run: the user has stopped the answer.";
    if (a->failed_in_a_row > failed_before)
        return "Not run: the cell before it failed.";
    return has_enough_cells(a) ? "Not run: there have been enough cells for one question." : NULL;
}

/* All calls of the last message. 0 with the course; a set of enum turn; or -1. */
static int run_calls(struct agent *a, enum course *ret, struct err *e)
{
    const json_t *calls = open_calls(a), *call;
    unsigned failed_before = a->failed_in_a_row;
    json_t *results = talk_results();
    bool enough = has_enough_cells(a); /* then it should have answered */
    bool stopped = false;
    size_t i;

    json_array_foreach(calls, i, call)
    {
        const char *why = hindrance(a, failed_before, stopped);
        int turn = 0;
        if (why)
            talk_add_result(results, text_of(call, "id"), why, true, NULL);
        else
            turn = run_call(a, call, results, &stopped, e);
        if (turn != 0) {
            json_decref(results);
            return turn;
        }
        failed_before = a->failed_in_a_row < failed_before ? a->failed_in_a_row : failed_before;
    }
    add(a, results);
    *ret = stopped ? end(a, AGENT_STOPPED, xstrdup(BY_THE_USER)) : GO_ON;
    if (*ret == GO_ON && enough)
        *ret = end(a, AGENT_BOUND,
                   xasprintf("stopped after %u cells (--max-cells)", a->answer->cells));
    return 0;
}

/* ---- replies ---- */

/* A server may take the tool and never tell its model: then the model writes blocks, and is one without. */
static void take_blocks(struct agent *a, struct reply *r)
{
    if (r->n_calls > 0 || (a->o.model->tools && a->called))
        return;
    reply_take_blocks(r);
    if (r->n_calls > 0 && a->o.model->tools) {
        a->o.model->tools = false;
        note(a, "the model writes its code as blocks, and does not use the tool: they are run");
    }
}

/* The last text is what there is, whatever happens next. */
static void take_reply(struct agent *a, const struct reply *r)
{
    struct agent_answer *answer = a->answer;

    if (r->text.len > 0) {
        free(answer->text);
        answer->text = xasprintf("%.*s", (int)r->text.len, r->text.data);
    }
    answer->tokens_in += r->tokens_in;
    answer->tokens_out += r->tokens_out;
    answer->cost = cost_of(a);
}

static enum course judge(struct agent *a, const struct reply *r)
{
    if (r->n_calls > 0)
        return GO_ON;
    if (r->refused)
        return end(a, AGENT_REFUSED, xstrdup("the model refused to go on"));
    if (r->cut)
        note(a, "the reply was cut: it became longer than the model may write at once");
    a->answer->end = AGENT_ANSWERED;
    return IS_OVER;
}

/* Ask, and add what it says. 0 with the course; a set of enum turn: leave; or -1. */
static int ask(struct agent *a, enum course *ret, struct err *e)
{
    struct reply r;

    ready_system(a);
    a->o.view->asking(a->o.view->ctx);
    a->o.owner->tick_ms = TICK_MS;
    int turn = exchange(a->o.owner, a->o.client, a->o.model, &a->request, &a->exchange_view,
                        deadline_ms(a), &r, e);
    if (turn > 0 && turn & TURN_SIGINT) {
        *ret = IS_OVER;
        return stop(a);
    }
    if (turn < 0 && e->code == ETIMEDOUT && a->o.bounds.wall_ms) {
        *ret = out_of_time(a); /* or it would be, before it can be asked again */
        return 0;
    }
    if (turn != 0)
        return turn;
    take_blocks(a, &r);
    a->o.view->replied(a->o.view->ctx);
    add(a, reply_message(&r, a->o.model->protocol->name));
    take_reply(a, &r);
    *ret = judge(a, &r);
    reply_done(&r);
    return 0;
}

/* ---- a question ---- */

static int pursue(struct agent *a, struct err *e)
{
    enum course course = GO_ON;
    int turn = open_calls(a) ? run_calls(a, &course, e) : 0;

    while (turn == 0 && course == GO_ON && check_bounds(a) == GO_ON) {
        turn = ask(a, &course, e);
        if (turn == 0 && course == GO_ON)
            turn = run_calls(a, &course, e);
    }
    return turn;
}

int agent_answer(struct agent *a, const char *question, struct agent_answer *ret, struct err *e)
{
    *ret = (struct agent_answer){.text = xstrdup("")};
    a->answer = ret;
    a->began_ms = clock_now_ms();
    a->failed_in_a_row = 0;
    a->o.guest->undo = a->o.clean_retries;
    a->o.guest->view = &a->guest_view;
    if (question)
        add(a, talk_user(question, strlen(question)));
    int turn = a->system ? 0 : prompt_look(&a->prompt, a->o.guest, e);
    if (turn > 0 && turn & TURN_SIGINT)
        turn = stop(a);
    else if (turn == 0)
        turn = pursue(a, e);
    if (turn < 0)
        close_talk(a, e->text);
    else if (turn == 0 && ret->end != AGENT_ANSWERED)
        close_talk(a, ret->why);
    ret->wall_ms = (uint64_t)(clock_now_ms() - a->began_ms);
    a->o.owner->tick_ms = 0;
    a->answer = NULL;
    return turn;
}
