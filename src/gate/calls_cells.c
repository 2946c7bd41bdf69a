/* calls_cells: running cells, asking about them, and the journal of those that ran. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate/calls.h"
#include "session/cell_json.h"
#include "session/notebook.h"
#include "wire/proto.h"

/* What is read from the journal at once, and one cell more: how large that can be is journal_outputs. */
#define PAGE_BYTES (8u << 20)
#define LINEAGE_MAX 64 /* more than a branch of a branch can have */
#define NOTEBOOK_PAGE 64
#define NOTEBOOK_BYTES (1u << 20)

static int ask_on_error(struct request *r, const struct live *l, const json_t *on_error, bool *ret)
{
    const char *word = json_string_value(on_error);

    *ret = word && strcmp(word, "rollback") == 0;
    if (*ret && l->checkpoints == 0) {
        reply_error(
            r, 409, "no_checkpoint",
            "nothing is kept of this session (its \"checkpoints\" is 0): it cannot be undone");
        return -1;
    }
    if (!on_error || *ret || (word && strcmp(word, "keep") == 0))
        return 0;
    reply_error(r, 400, "bad_request", "\"on_error\" is \"keep\" or \"rollback\"");
    return -1;
}

void call_cell_new(struct request *r)
{
    static const char *const members[] = {"code",    "timeout",  "on_error",
                                          "summary", "pictures", NULL};
    json_t *body = ask_object(r, members);
    struct job_order o = {.kind = JOB_CELL};

    if (!body)
        return;
    struct live *l = live_asked(r);
    if (l && ask_code(r, body, &o.code, &o.len) == 0 &&
        ask_timeout(r, json_object_get(body, "timeout"), r->gate->config->max.timeout_ms,
                    &o.timeout_ms) == 0 &&
        ask_summary(r, json_object_get(body, "summary"), &o.summary) == 0 &&
        ask_pictures(r, json_object_get(body, "pictures"), &o.pictures) == 0 &&
        ask_on_error(r, l, json_object_get(body, "on_error"), &o.undo) == 0 &&
        holder_begins_cell(r) == 0)
        job_add(l, r, &o);
    json_decref(body);
}

void call_variables(struct request *r)
{
    struct live *l = live_asked(r);

    if (l && holder_begins_cell(r) == 0) /* it runs the __repr__ of whatever there is */
        job_add(l, r, &(struct job_order){.kind = JOB_VARIABLES});
}

/* ---- is it complete? ---- */

struct check {
    struct transfer t; /* hangs on its session and its request as those do */
    struct check_request *asked;
};

static void check_free(struct transfer *t)
{
    struct check *c = (struct check *)t;

    if (c->asked)
        session_check_cancel(c->asked);
    free(c);
}

static void on_checked(void *ctx, const struct check_answer *a)
{
    static const char *const names[] = {[CHECK_COMPLETE] = "complete",
                                        [CHECK_INCOMPLETE] = "incomplete",
                                        [CHECK_INVALID] = "invalid"};
    struct check *c = ctx;
    struct request *r = c->t.request;

    c->asked = NULL;
    transfer_over(&c->t);
    if (!a->e)
        reply_json(r, 200, json_pack("{s:s,s:s}", "status", names[a->state], "indent", a->indent));
    else if (a->e->code == ETIMEDOUT)
        reply_later(r, 503, 1, "no_answer", "%s", a->e->text);
    else
        reply_error(r, 410, "session_ended", "%s", a->e->text);
}

static void check_failed(struct request *r, const struct err *e)
{
    if (e->code == EBUSY)
        reply_error(r, 409, "session_busy", "the interpreter has something else to do; try again");
    else if (e->code == EFBIG)
        reply_error(r, 413, "too_large", "%s", e->text);
    else
        reply_error(r, 410, "session_ended", "%s", e->text);
}

void call_check(struct request *r)
{
    static const char *const members[] = {"code", NULL};
    json_t *body = ask_object(r, members);
    const char *code;
    size_t len;
    struct err e;

    if (!body)
        return;
    struct live *l = live_asked(r);
    if (l && ask_code(r, body, &code, &len) == 0) {
        struct check *c = transfer_new(l, r, sizeof(*c), check_free);
        c->asked = session_ask_check(l->session, code, len, on_checked, c, &e);
        if (!c->asked) {
            transfer_over(&c->t);
            check_failed(r, &e);
        }
    }
    json_decref(body);
}

/* ---- the journal ---- */

/* Is the session this token's, alive or not? 0, or -1 and the request is answered. */
static int check_owner(struct request *r)
{
    struct session_row row;
    struct err e = {0};

    if (live_find(r))
        return 0;
    int found = store_session_get(r->gate->store, r->holder->token.id, r->params[0], &row, &e);
    if (found > 0) {
        session_row_done(&row);
        return 0;
    }
    if (found < 0)
        reply_store_failed(r, &e);
    else
        reply_error(r, 404, "not_found", "there is no such session");
    return -1;
}

static int parse_number(const char *text, uint32_t *ret)
{
    char *end;

    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] < '0' || text[0] > '9' || n > UINT32_MAX)
        return -1;
    *ret = (uint32_t)n;
    return 0;
}

struct page {
    struct buf text;
    unsigned n, limit;
    uint32_t last;
    bool more;
};

static bool add_cell(void *ctx, uint32_t n, const char *json, size_t len)
{
    struct page *p = ctx;

    if (p->n == p->limit || p->text.len > PAGE_BYTES) {
        p->more = true;
        return false;
    }
    if (p->n++ > 0)
        buf_add(&p->text, ",", 1);
    buf_add(&p->text, json, len);
    p->last = n;
    return true;
}

void call_cells(struct request *r)
{
    const char *after_text = request_query(r, "after");
    uint32_t after = 0;
    unsigned limit;
    struct page page = {0};
    struct err e;

    if (check_owner(r) < 0 || ask_page(r, &limit) < 0)
        return;
    if (after_text && parse_number(after_text, &after) < 0) {
        reply_error(r, 400, "bad_request", "\"after\" must be the \"next\" of an earlier answer");
        return;
    }
    page.limit = limit;
    buf_add_text(&page.text, "{\"data\":[");
    if (store_cells(r->gate->store, r->params[0], after, limit + 1, add_cell, &page, &e) < 0) {
        buf_done(&page.text);
        reply_store_failed(r, &e);
        return;
    }
    if (page.more)
        buf_add_fmt(&page.text, "],\"next\":\"%u\"}\n", page.last);
    else
        buf_add_text(&page.text, "],\"next\":null}\n");
    reply_text(r, 200, "application/json", &page.text);
}

void call_cell(struct request *r)
{
    struct buf text = {0};
    uint32_t n;
    char *json;
    size_t len;
    struct err e = {0};

    if (check_owner(r) < 0)
        return;
    int found = parse_number(r->params[1], &n) < 0
                    ? 0
                    : store_cell_get(r->gate->store, r->params[0], n, &json, &len, &e);
    if (found < 0) {
        reply_store_failed(r, &e);
    } else if (found == 0) {
        reply_error(r, 404, "not_found", "there is no such cell in the journal");
    } else {
        buf_add(&text, json, len);
        buf_add(&text, "\n", 1);
        free(json);
        reply_text(r, 200, "application/json", &text);
    }
}

/* ---- as a notebook, a page of the journal at a time ---- */

/* A journal, up to this cell. */
struct part {
    char id[SESSION_ID_MAX];
    uint32_t up_to;
};

struct notebook {
    struct request *request;
    struct part parts[LINEAGE_MAX]; /* the session itself, and those that it comes from */
    unsigned n_parts;               /* that are not written yet: the last is next */
    struct buf out;
    size_t sent;
    uint64_t held;
    unsigned written; /* cells */
    uint32_t last;
    unsigned n; /* in the last page */
    bool more;  /* may follow */
    bool over;
};

/* What a branch was before it was one belongs to its notebook: without it, the rest means nothing. */
static void find_lineage(struct notebook *b, const struct request *r)
{
    struct session_row row = {.parent_n = UINT32_MAX};
    struct err ignored;

    snprintf(row.parent, sizeof(row.parent), "%s", r->params[0]);
    while (row.parent[0] && b->n_parts < LINEAGE_MAX) {
        struct part *p = &b->parts[b->n_parts++];
        memcpy(p->id, row.parent, sizeof(p->id));
        p->up_to = row.parent_n;
        session_row_done(&row);
        if (store_session_get(r->gate->store, r->holder->token.id, p->id, &row, &ignored) <= 0)
            break; /* it was forgotten */
    }
    session_row_done(&row);
}

/* One that raised and is restored was taken back: what raises stays otherwise. */
static bool was_undone(const json_t *cell)
{
    const char *status = json_string_value(json_object_get(cell, "status"));

    return status && strcmp(status, "error") == 0 && json_object_get(cell, "restored_to");
}

static bool add_to_notebook(void *ctx, uint32_t n, const char *json, size_t len)
{
    struct notebook *b = ctx;

    if (n > b->parts[b->n_parts - 1].up_to)
        return false;
    json_t *cell = json_loadb(json, len, 0, NULL);
    if (cell)
        notebook_code(&b->out, cell, was_undone(cell), b->written++);
    json_decref(cell);
    b->last = n;
    b->more = ++b->n == NOTEBOOK_PAGE || b->out.len > NOTEBOOK_BYTES;
    return !b->more;
}

/* The next page of it, or of those that follow. */
static int fill_notebook(struct notebook *b, struct err *e)
{
    b->n = 0;
    for (b->more = false; b->n_parts > 0 && !b->more; b->n_parts -= !b->more)
        if (store_cells(b->request->gate->store, b->parts[b->n_parts - 1].id, b->last,
                        NOTEBOOK_PAGE, add_to_notebook, b, e) < 0)
            return -1;
    if (!b->more) {
        notebook_end(&b->out, json_pack("{s:s}", "session", b->parts[0].id));
        b->over = true;
    }
    return 0;
}

static ssize_t read_notebook(void *ctx, uint64_t pos, char *to, size_t max)
{
    struct notebook *b = ctx;
    struct err e;
    (void)pos;

    if (b->sent == b->out.len) {
        buf_done(&b->out); /* one page may have been large */
        b->sent = 0;
        if (b->over)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (fill_notebook(b, &e) < 0)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        request_answer_holds(b->request, &b->held, b->out.cap);
    }
    size_t n = b->out.len - b->sent < max ? b->out.len - b->sent : max;
    memcpy(to, b->out.data + b->sent, n);
    b->sent += n;
    return (ssize_t)n;
}

static void notebook_done(void *ctx)
{
    struct notebook *b = ctx;

    buf_done(&b->out);
    free(b);
}

void call_notebook(struct request *r)
{
    if (check_owner(r) < 0)
        return;
    struct notebook *b = xcalloc(1, sizeof(*b));
    b->request = r;
    find_lineage(b, r);
    notebook_begin(&b->out);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, 64 << 10, read_notebook, b, notebook_done);
    response_begin(response, NOTEBOOK_TYPE);
    response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION,
                    "attachment; filename=\"session.ipynb\"");
    request_reply(r, 200, response);
}
