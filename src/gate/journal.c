/* journal: see journal.h.
 *
 * Counted is the text of JSON, in which a control character takes six bytes: what is stored, read and sent is
 * that. Code and traceback get a quarter each at most, so that something of the outputs is always kept.
 */
#include "gate/journal.h"

#include <stdbool.h>
#include <string.h>

#include "session/cell_json.h"
#include "session/utf8.h"

static uint64_t json_size(const json_t *j)
{
    return json_dumpb(j, NULL, 0, CELL_JSON_FLAGS | JSON_ENCODE_ANY);
}

/* Bytes that one takes in a string of JSON, as jansson writes it. */
static unsigned escaped(char c)
{
    if (c == '"' || c == '\\' || (c >= '\b' && c <= '\r' && c != '\v'))
        return 2;
    return (unsigned char)c < ' ' ? 6 : 1;
}

/* The longest beginning, in whole characters, that takes at most `max` bytes as JSON. */
static json_t *beginning(const json_t *text, uint64_t max)
{
    const char *from = json_string_value(text);
    size_t len = json_string_length(text), n = 0;

    for (uint64_t used = 0; n < len && (used += escaped(from[n])) <= max; n++)
        ;
    return json_stringn_nocheck(from, utf8_fit(from, len, n));
}

/* Note in the cell's "cut" what is not whole. */
static void note(json_t *cell, const char *what, size_t number)
{
    json_t *cut = json_object_get(cell, "cut");

    if (number == 0)
        return;
    if (!cut) {
        cut = json_object();
        json_object_set_new(cell, "cut", cut);
    }
    json_object_set_new(cut, what, json_integer((json_int_t)number));
}

/* A text of `owner`, which is the cell or a part of it; what it takes. */
static uint64_t fit_text(json_t *cell, json_t *owner, const char *key, uint64_t max)
{
    const json_t *text = json_object_get(owner, key);
    uint64_t size = text ? json_size(text) : 0;

    if (size <= max)
        return size;
    note(cell, key, json_string_length(text));
    json_object_set_new(owner, key, beginning(text, max));
    return max;
}

static size_t length_of(json_t *output, const json_t *text)
{
    return text ? json_string_length(text) : cell_display_length(output);
}

/* False: there is no room for even the least of it. */
static bool fit_output(json_t *output, uint64_t *left)
{
    json_t *text = json_object_get(output, "text");
    uint64_t size = json_size(output);

    if (size > *left) {
        json_incref(text);
        json_object_set_new(output, "cut", json_integer((json_int_t)length_of(output, text)));
        json_object_set_new(output, text ? "text" : "data", text ? json_string("") : json_object());
        if (!text)
            json_object_set_new(output, "metadata", json_object());
        size = json_size(output);
        if (text && size < *left) {
            json_object_set_new(output, "text", beginning(text, *left - size));
            size = *left;
        }
        json_decref(text);
    }
    if (size > *left)
        return false;
    *left -= size;
    return true;
}

/* How many were left out. */
static size_t fit_outputs(json_t *outputs, uint64_t *left)
{
    json_t *kept = json_array();
    size_t n = json_array_size(outputs);

    for (size_t i = 0; i < n; i++) {
        json_t *output = json_array_get(outputs, i);
        if (fit_output(output, left))
            json_array_append(kept, output);
    }
    n -= json_array_size(kept);
    json_array_clear(outputs);
    json_array_extend(outputs, kept);
    json_decref(kept);
    return n;
}

static size_t fit_files(json_t *files, uint64_t left)
{
    size_t n = json_array_size(files), kept = 0;
    uint64_t size;

    for (; kept < n && (size = json_size(json_array_get(files, kept)) + 1) <= left; kept++)
        left -= size;
    while (json_array_size(files) > kept)
        json_array_remove(files, json_array_size(files) - 1);
    return n - kept;
}

/* A part of a summary would be one whose blocks have no end. What is left of it. */
static uint64_t fit_summary(json_t *cell, uint64_t max)
{
    const json_t *summary = json_object_get(cell, "summary");
    uint64_t size = summary ? json_size(summary) : 0;

    if (size <= max)
        return size;
    note(cell, "summary", json_string_length(summary));
    json_object_set_new(cell, "summary", json_string("(not kept)"));
    return strlen("\"(not kept)\"");
}

void journal_fit(json_t *cell, uint64_t max)
{
    json_t *error = json_object_get(cell, "error");
    uint64_t left = max;

    left -= fit_text(cell, cell, "code", max / 4);
    left -= fit_text(cell, error, "traceback", max / 4);
    left -= fit_text(cell, error, "value", max / 8);
    left -= fit_summary(cell, max / 8);
    note(cell, "outputs", fit_outputs(json_object_get(cell, "outputs"), &left));
    note(cell, "files", fit_files(json_object_get(cell, "files"), left));
}
