/* recheck: see recheck.h. */
#include "cli/recheck.h"

#include <string.h>

#include "agent/compare.h"
#include "agent/evidence.h"
#include "agent/numbers.h"
#include "base/buf.h"
#include "base/limits.h"
#include "guest/guest.h"
#include "session/cell_json.h"
#include "session/notebook.h"
#include "session/sanitise.h"
#include "session/utf8.h"

#define CODE_TOLD 60 /* bytes of a cell's first line */
#define ROOM (4 * COMPARE_TEXT_MAX)

struct course {
    const struct recheck *r;
    struct guest guest;
    struct buf evidence;
    json_t *cells;
    json_int_t same, differs, unrecorded, undone, not_run;
};

static void set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        bug("cannot build JSON (%s)", key);
}

/* ---- a recorded cell ---- */

static bool is_undone(const json_t *cell)
{
    const json_t *retort = json_object_get(json_object_get(cell, "metadata"), "retort");

    return json_is_true(json_object_get(retort, "undone"));
}

static bool is_recorded(const json_t *cell)
{
    return json_array_size(json_object_get(cell, "outputs")) > 0 ||
           json_is_integer(json_object_get(cell, "execution_count"));
}

static const char *source_of(const json_t *cell, size_t *ret_len)
{
    const json_t *source = json_object_get(cell, "source");

    *ret_len = json_string_length(source);
    return json_is_string(source) ? json_string_value(source) : "";
}

/* Its first line that is not empty; NULL: there is none. */
static json_t *first_line(const json_t *cell)
{
    size_t len;
    const char *at = source_of(cell, &len), *end = at + len;

    while (at < end && strchr(" \t\r\n", *at) && *at)
        at++;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    len = (size_t)((newline ? newline : end) - at);
    return len > 0 ? json_stringn_nocheck(at, utf8_fit(at, len, CODE_TOLD)) : NULL;
}

/* ---- one cell after the other ---- */

static int wait_for_cell(struct guest *g, struct err *e)
{
    while (!g->cell) {
        int turn = owner_turn(g->owner, -1, e);
        if (turn < 0)
            return -1;
        if (turn & (TURN_SIGINT | TURN_STOP | TURN_CLOSED))
            return turn;
    }
    return 0;
}

/* What comes now, as the notebook would have it. */
static int run_cell(struct course *c, const json_t *cell, json_t **ret, struct err *e)
{
    size_t len;
    const char *source = source_of(cell, &len);

    if (guest_start(&c->guest, source, len, 0, e) < 0)
        return -1;
    int turn = wait_for_cell(&c->guest, e);
    if (turn != 0)
        return turn;
    struct cell *came = guest_take(&c->guest);
    json_t *json = cell_json(came, SUMMARY_MIN);
    *ret = notebook_code_json(json, false);
    json_decref(json);
    cell_free(came);
    return 0;
}

static void report(struct course *c, json_t *line, const char *status, json_int_t *count)
{
    set(line, "status", json_string(status));
    ++*count;
    if (c->r->cell)
        c->r->cell(c->r->ctx, line);
}

static int check_cell(struct course *c, const json_t *cell, json_t *line, struct err *e)
{
    json_t *now;
    int turn = run_cell(c, cell, &now, e);

    if (turn != 0)
        return turn;
    evidence_add(&c->evidence, now);
    if (is_recorded(cell)) {
        json_t *found = compare_cells(cell, now);
        bool differs = json_array_size(json_object_get(found, "differences")) > 0;
        json_object_update(line, found);
        evidence_add(&c->evidence, cell);
        json_decref(found);
        report(c, line, differs ? "differs" : "same", differs ? &c->differs : &c->same);
    } else {
        report(c, line, "unrecorded", &c->unrecorded);
    }
    json_decref(now);
    return 0;
}

/* `n`: its number among them. */
static int check_next(struct course *c, size_t n, const json_t *cell, struct err *e)
{
    json_t *code = first_line(cell);

    if (!code)
        return 0;
    json_t *line = json_pack("{s:I, s:o}", "cell", (json_int_t)n, "code", code);
    if (!line || json_array_append_new(c->cells, line) < 0)
        bug("cannot build JSON");
    if (is_undone(cell))
        report(c, line, "undone", &c->undone);
    else if (guest_ended(&c->guest))
        report(c, line, "not_run", &c->not_run);
    else
        return check_cell(c, cell, line, e);
    return 0;
}

static int check_cells(struct course *c, struct err *e)
{
    int turn = 0;

    for (size_t i = 0; turn == 0 && i < json_array_size(c->r->cells); i++)
        turn = check_next(c, i + 1, json_array_get(c->r->cells, i), e);
    return turn;
}

/* ---- the answers ---- */

static void add_given(struct course *c)
{
    for (size_t i = 0; i < json_array_size(c->r->given); i++) {
        const json_t *text = json_array_get(c->r->given, i);
        evidence_add_text(&c->evidence, json_string_value(text), json_string_length(text));
    }
    for (unsigned i = 0; i < c->r->uploads->n; i++) {
        const char *name = c->r->uploads->list[i].name;
        evidence_add_text(&c->evidence, name, strlen(name));
    }
}

static json_t *find_unfounded(struct course *c)
{
    json_t *all = json_array();

    add_given(c);
    const char *evidence = buf_text(&c->evidence);
    for (size_t i = 0; i < json_array_size(c->r->answers); i++) {
        const json_t *answer = json_array_get(c->r->answers, i);
        json_t *some = numbers_unfounded(json_string_value(answer), &evidence, 1);
        json_array_extend(all, some);
        json_decref(some);
    }
    return all;
}

static json_t *make_report(struct course *c)
{
    json_t *unfounded = find_unfounded(c);
    bool verified = c->differs == 0 && c->not_run == 0 && json_array_size(unfounded) == 0;
    json_t *j =
        json_pack("{s:O, s:I, s:I, s:I, s:I, s:I, s:o, s:b}", "cells", c->cells, "same", c->same,
                  "differs", c->differs, "unrecorded", c->unrecorded, "undone", c->undone,
                  "not_run", c->not_run, "unfounded", unfounded, "verified", verified);

    assert_that(j);
    return j;
}

int recheck(const struct recheck *r, json_t **ret, struct err *e)
{
    struct course c = {.r = r, .cells = json_array()};

    int turn = guest_open(&c.guest, r->owner, r->limits, NULL, e);
    if (turn == 0)
        turn = uploads_put(r->uploads, &c.guest, e);
    if (turn == 0)
        turn = check_cells(&c, e);
    guest_close(&c.guest);
    if (turn == 0)
        *ret = make_report(&c);
    buf_done(&c.evidence);
    json_decref(c.cells);
    return turn;
}

/* ---- for a person ---- */

static const char *text_of(const json_t *object, const char *key, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));

    return sanitise_name(text ? text : "", ret, size);
}

static void show_difference(struct outlet *out, int fd, const json_t *d)
{
    char what[ROOM], recorded[ROOM], now[ROOM];
    json_int_t line = json_integer_value(json_object_get(d, "line"));

    outlet_say(out, fd, "      %s", text_of(d, "what", what, sizeof(what)));
    if (line > 1)
        outlet_say(out, fd, ", line %" JSON_INTEGER_FORMAT, line);
    outlet_say(out, fd, "\n      - %s\n      + %s\n",
               text_of(d, "recorded", recorded, sizeof(recorded)),
               text_of(d, "now", now, sizeof(now)));
}

void recheck_show_cell(struct outlet *out, int fd, const json_t *cell)
{
    const json_t *differences = json_object_get(cell, "differences");
    const json_t *remarks = json_object_get(cell, "remarks");
    char code[ROOM], status[32], said[ROOM];

    text_of(cell, "status", status, sizeof(status));
    outlet_say(out, fd, "%4" JSON_INTEGER_FORMAT "  %-12s  %s\n",
               json_integer_value(json_object_get(cell, "cell")),
               strcmp(status, "unrecorded") == 0 ? "not recorded"
               : strcmp(status, "not_run") == 0  ? "not run"
                                                 : status,
               text_of(cell, "code", code, sizeof(code)));
    for (size_t i = 0; i < json_array_size(differences); i++)
        show_difference(out, fd, json_array_get(differences, i));
    for (size_t i = 0; i < json_array_size(remarks); i++)
        outlet_say(
            out, fd, "      (%s)\n",
            sanitise_name(json_string_value(json_array_get(remarks, i)), said, sizeof(said)));
}

static void show_counts(struct outlet *out, int fd, const json_t *report)
{
    static const struct {
        const char *key, *words;
    } counts[] = {
        {"same", "the same"}, {"differs", "different"}, {"unrecorded", "not recorded"},
        {"undone", "undone"}, {"not_run", "not run"},
    };
    size_t n = json_array_size(json_object_get(report, "cells"));

    outlet_say(out, fd, "%zu cell%s", n, n == 1 ? "" : "s");
    const char *before = ": ";
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        json_int_t count = json_integer_value(json_object_get(report, counts[i].key));
        if (count == 0)
            continue;
        outlet_say(out, fd, "%s%" JSON_INTEGER_FORMAT " %s", before, count, counts[i].words);
        before = ", ";
    }
    outlet_say(out, fd, "\n");
}

void recheck_show_end(struct outlet *out, int fd, const json_t *report)
{
    const json_t *unfounded = json_object_get(report, "unfounded");
    size_t n = json_array_size(unfounded);
    char number[ROOM];

    show_counts(out, fd, report);
    if (n == 0)
        return;
    outlet_say(out, fd, "%zu number%s of the answer stand%s in no output:", n, n == 1 ? "" : "s",
               n == 1 ? "s" : "");
    for (size_t i = 0; i < n && i < 50; i++)
        outlet_say(
            out, fd, "%s %s", i ? "," : "",
            sanitise_name(json_string_value(json_array_get(unfounded, i)), number, sizeof(number)));
    outlet_say(out, fd, "%s\n", n > 50 ? ", …" : "");
}
