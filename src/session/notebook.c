/* notebook: see notebook.h.
 *
 * What a notebook has no word for (a limit that was met, text left out, a crash) is said on stderr or as
 * an error, so that whoever reads it sees why there is no more.
 */
#include "session/notebook.h"

#include <string.h>

#include "base/err.h"
#include "session/cell_json.h"

#define DUMP (JSON_COMPACT | JSON_REAL_PRECISION(15))
#define DEPTH_MAX 64             /* what reads notebooks is not made for more */
#define JSON_PART_MAX (4u << 20) /* parsed JSON takes many times its text */

/* ---- JSON ---- */

static void set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        bug("cannot build a notebook (%s)", key);
}

static void append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) < 0)
        bug("cannot build a notebook");
}

/* A member that is a text, or the empty one. */
static json_t *text_of(const json_t *object, const char *key)
{
    json_t *j = json_object_get(object, key);

    return json_is_string(j) ? json_incref(j) : json_string("");
}

static bool is_shallow(json_t *j, unsigned depth)
{
    if (depth > DEPTH_MAX)
        return false;
    for (void *i = json_object_iter(j); i; i = json_object_iter_next(j, i))
        if (!is_shallow(json_object_iter_value(i), depth + 1))
            return false;
    for (size_t i = 0; i < json_array_size(j); i++)
        if (!is_shallow(json_array_get(j, i), depth + 1))
            return false;
    return true;
}

static json_t *object_of(const json_t *object, const char *key)
{
    json_t *j = json_object_get(object, key);

    return json_is_object(j) && is_shallow(j, 0) ? json_incref(j) : json_object();
}

static int add_piece(const char *data, size_t len, void *ctx)
{
    buf_add(ctx, data, len);
    return 0;
}

static void dump(struct buf *b, json_t *j)
{
    if (json_dump_callback(j, add_piece, b, DUMP) < 0)
        bug("cannot write a notebook");
    json_decref(j);
}

/* ---- outputs ---- */

static json_t *stream_of(const char *name, json_t *text)
{
    json_t *j = json_object();

    set(j, "output_type", json_string("stream"));
    set(j, "name", json_string(name));
    set(j, "text", text);
    return j;
}

static bool is_json_type(const char *type)
{
    size_t n = strlen(type);

    return strcmp(type, "application/json") == 0 || (n > 5 && strcmp(type + n - 5, "+json") == 0);
}

/* A part as the cell has it, only that what is JSON is itself and not its text: a chart would not be
 * drawn else. */
static json_t *part_of(const char *type, json_t *text)
{
    size_t len = json_string_length(text);

    if (!is_json_type(type) || len > JSON_PART_MAX)
        return json_incref(text);
    json_t *value =
        json_loadb(json_string_value(text), len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (value && is_shallow(value, 0))
        return value;
    json_decref(value);
    return json_incref(text);
}

static json_t *bundle_of(const json_t *output)
{
    json_t *parts = object_of(output, "data"), *bundle = json_object();

    for (void *i = json_object_iter(parts); i; i = json_object_iter_next(parts, i))
        if (json_is_string(json_object_iter_value(i)))
            set(bundle, json_object_iter_key(i),
                part_of(json_object_iter_key(i), json_object_iter_value(i)));
    json_decref(parts);
    return bundle;
}

static json_t *shown_of(const json_t *output, const char *kind)
{
    json_t *j = json_object();

    set(j, "output_type", json_string(kind));
    set(j, "data", bundle_of(output));
    set(j, "metadata", object_of(output, "metadata"));
    return j;
}

static void add_output(json_t *outputs, const json_t *output, json_int_t n)
{
    const char *type = json_string_value(json_object_get(output, "type"));

    if (!type)
        return;
    if (strcmp(type, "stdout") == 0 || strcmp(type, "stderr") == 0) {
        append(outputs, stream_of(type, text_of(output, "text")));
    } else if (strcmp(type, "display") == 0) {
        append(outputs, shown_of(output, "display_data"));
    } else if (strcmp(type, "result") == 0) {
        json_t *j = shown_of(output, "execute_result");
        set(j, "execution_count", json_integer(n));
        append(outputs, j);
    }
}

static json_t *lines_of(json_t *text)
{
    const char *at = json_string_value(text), *end = at + json_string_length(text);
    json_t *lines = json_array();

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline ? newline : end) - at);
        append(lines, json_stringn_nocheck(at, len));
        at += len + (newline != NULL);
    }
    json_decref(text);
    return lines;
}

static void add_error(json_t *outputs, json_t *name, json_t *value, json_t *traceback)
{
    json_t *j = json_object();

    set(j, "output_type", json_string("error"));
    set(j, "ename", name);
    set(j, "evalue", value);
    set(j, "traceback", lines_of(traceback));
    append(outputs, j);
}

/* ---- what a notebook has no word for ---- */

static json_int_t count_of(const json_t *object, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(object, key));

    return n > 0 ? n : 0;
}

static void add_note(json_t *outputs, struct buf *text)
{
    append(outputs, stream_of("stderr", json_stringn_nocheck(text->data, text->len)));
    text->len = 0;
}

static void add_notes(json_t *outputs, const json_t *cell, const char *status)
{
    const json_t *limit = json_object_get(cell, "limit");
    const json_t *truncated = json_object_get(cell, "truncated");
    cleanup_buf struct buf b = {0};

    if (truncated) {
        buf_add_fmt(&b,
                    "[retort: left out in the middle: %" JSON_INTEGER_FORMAT
                    " bytes of stdout, %" JSON_INTEGER_FORMAT " of stderr]\n",
                    count_of(truncated, "stdout_bytes"), count_of(truncated, "stderr_bytes"));
        add_note(outputs, &b);
    }
    if (json_is_string(json_object_get(limit, "kind"))) {
        json_t *number = json_object_get(limit, "limit");
        buf_add_fmt(&b, "[retort: this cell %s the limit \"%s\"",
                    strcmp(status, "limit") == 0 ? "was ended by" : "met",
                    json_string_value(json_object_get(limit, "kind")));
        if (json_is_number(number))
            buf_add_fmt(&b, ", which is %.15g", json_number_value(number));
        buf_add_text(&b, "]\n");
        add_note(outputs, &b);
    }
}

/* Ends that have no error of their own. */
static void add_end(json_t *outputs, const char *status)
{
    static const char *const ends[][3] = {
        {"interrupted", "Interrupted", "this cell was stopped before it came to its end"},
        {"crashed", "Crashed", "the interpreter died in this cell"},
        {"limit", "Limit", "this cell met a limit and was ended"},
    };

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (strcmp(status, ends[i][0]) == 0)
            add_error(outputs, json_string(ends[i][1]), json_string(ends[i][2]),
                      json_sprintf("%s: %s", ends[i][1], ends[i][2]));
}

static json_t *outputs_of(const json_t *cell, json_int_t n)
{
    const json_t *error = json_object_get(cell, "error");
    const char *status = json_string_value(json_object_get(cell, "status"));
    const json_t *from = json_object_get(cell, "outputs");
    json_t *outputs = json_array();

    status = status ? status : "";
    for (size_t i = 0; i < json_array_size(from); i++)
        add_output(outputs, json_array_get(from, i), n);
    add_notes(outputs, cell, status);
    if (json_is_object(error))
        add_error(outputs, text_of(error, "name"), text_of(error, "value"),
                  text_of(error, "traceback"));
    else
        add_end(outputs, status);
    return outputs;
}

/* ---- the notebook ---- */

/* What happened to the cell, beyond what it shows. */
static json_t *metadata_of(const json_t *cell, bool undone)
{
    json_t *files = json_object_get(cell, "files"), *status = json_object_get(cell, "status");
    json_t *retort = json_object(), *j = json_object();

    if (json_is_string(status))
        set(retort, "status", json_incref(status));
    if (json_array_size(files) > 0 && is_shallow(files, 0))
        set(retort, "files", json_incref(files));
    if (undone) {
        set(retort, "undone", json_true());
        set(j, "tags", json_pack("[s]", "raises-exception")); /* others go on behind it */
    }
    set(j, "retort", retort);
    return j;
}

json_t *notebook_code_json(const json_t *cell, bool undone)
{
    json_int_t n = count_of(cell, "n");
    json_t *j = json_object();

    set(j, "cell_type", json_string("code"));
    set(j, "metadata", metadata_of(cell, undone));
    set(j, "execution_count", json_integer(n));
    set(j, "source", text_of(cell, "code"));
    set(j, "outputs", outputs_of(cell, n));
    return j;
}

/* The ids are ours: a conversation that went on in another session counts its cells anew. */
static void add_cell(struct buf *b, json_t *j, unsigned place)
{
    set(j, "id", json_sprintf("cell-%u", place + 1));
    if (place > 0)
        buf_add_text(b, ",\n");
    dump(b, j);
}

void notebook_begin(struct buf *b)
{
    buf_add_text(b, "{\"cells\":[\n");
}

void notebook_code(struct buf *b, const json_t *cell, bool undone, unsigned place)
{
    add_cell(b, notebook_code_json(cell, undone), place);
}

void notebook_text(struct buf *b, const char *role, const char *text, size_t len, unsigned place)
{
    json_t *j = json_pack("{s:s, s:{s:{s:s}}}", "cell_type", "markdown", "metadata", "retort",
                          "role", role);

    assert_that(j);
    set(j, "source", cell_text_json(text, len));
    add_cell(b, j, place);
}

void notebook_end(struct buf *b, json_t *retort)
{
    set(retort, "version", json_integer(NOTEBOOK_VERSION));
    json_t *metadata =
        json_pack("{s:{s:s,s:s,s:s}, s:{s:s,s:s,s:s}, s:o}", "kernelspec", "display_name",
                  "Python 3", "language", "python", "name", "python3", "language_info", "name",
                  "python", "file_extension", ".py", "mimetype", "text/x-python", "retort", retort);

    assert_that(metadata);
    buf_add_text(b, "\n],\"metadata\":");
    dump(b, metadata);
    buf_add_text(b, ",\"nbformat\":4,\"nbformat_minor\":5}\n");
}
