/* cell_json: see cell_json.h. */
#include "session/cell_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "session/cell.h"
#include "session/summary.h"
#include "session/utf8.h"
#include "wire/proto.h"

json_t *cell_text_json(const char *text, size_t len)
{
    if (utf8_valid(text, len) == len)
        return json_stringn_nocheck(text, len);
    cleanup_buf struct buf b = {0};
    utf8_repair(&b, text, len);
    return json_stringn_nocheck(b.data, b.len);
}

static json_t *string_json(const char *text)
{
    return cell_text_json(text, strlen(text));
}

static json_t *base64_json(const char *data, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t size = (len + 2) / 3 * 4;
    cleanup_free char *text = xcalloc(1, size + 1);
    char *to = text;

    for (size_t i = 0; i < len; i += 3) {
        unsigned bits = (unsigned)(unsigned char)data[i] << 16;
        bits |= i + 1 < len ? (unsigned)(unsigned char)data[i + 1] << 8 : 0;
        bits |= i + 2 < len ? (unsigned)(unsigned char)data[i + 2] : 0;
        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = i + 1 < len ? digits[bits >> 6 & 63] : '=';
        *to++ = i + 2 < len ? digits[bits & 63] : '=';
    }
    return json_stringn_nocheck(text, size);
}

/* A whole number without a fraction, and null for what has no number. */
static json_t *number_json(double number)
{
    if (!isfinite(number))
        return json_null();
    if (number == floor(number) && fabs(number) < 9e15)
        return json_integer((json_int_t)number);
    return json_real(number);
}

static void set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        bug("cannot build JSON (%s)", key);
}

/* Keys that come from a box. */
static void set_foreign(json_t *object, const char *key, json_t *value)
{
    cleanup_free char *valid = utf8_repaired(key, strlen(key));

    set(object, valid, value);
}

json_t *cell_output_json(const struct output *o)
{
    json_t *j = json_object();

    set(j, "type", json_string(output_kind_name(o->kind)));
    if (o->kind == OUTPUT_STDOUT || o->kind == OUTPUT_STDERR) {
        set(j, "text", cell_text_json(o->text, o->len));
        return j;
    }
    json_t *data = json_object();
    for (unsigned i = 0; i < o->n_parts; i++) {
        const struct mime_part *p = &o->parts[i];
        set_foreign(data, p->type,
                    p->text ? cell_text_json(p->data, p->len) : base64_json(p->data, p->len));
    }
    set(j, "data", data);
    json_t *metadata = o->metadata ? json_loads(o->metadata, 0, NULL) : NULL;
    set(j, "metadata", metadata ? metadata : json_object());
    return j;
}

json_t *cell_error_json(const struct cell *c)
{
    json_t *j = json_object();

    set(j, "name", string_json(c->error.name));
    set(j, "value", string_json(c->error.value));
    set(j, "traceback", string_json(c->error.traceback));
    return j;
}

static json_t *limit_json(const struct cell *c)
{
    json_t *j = json_object();

    set(j, "kind", json_string(limit_kind_name(c->limit.kind)));
    set(j, "limit", number_json(c->limit.limit));
    set(j, "used", number_json(c->limit.used));
    return j;
}

static json_t *file_json(const struct file_note *f)
{
    json_t *j = json_object();
    char hex[2 * sizeof(f->sha256) + 1];

    set(j, "path", string_json(f->path));
    set(j, "change", json_string(file_change_name(f->change)));
    if (f->change == FILE_DELETED)
        return j;
    set(j, "size", json_integer((json_int_t)f->size));
    for (size_t i = 0; i < sizeof(f->sha256); i++) {
        hex[2 * i] = "0123456789abcdef"[f->sha256[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[f->sha256[i] & 15];
    }
    if (f->has_sha256)
        set(j, "sha256", json_stringn(hex, sizeof(hex) - 1));
    return j;
}

static json_t *files_json(const struct cell *c)
{
    json_t *j = json_array();

    for (unsigned i = 0; i < c->n_files; i++)
        json_array_append_new(j, file_json(&c->files[i]));
    return j;
}

static json_t *truncated_json(const struct cell *c)
{
    json_t *j = json_object();

    set(j, "stdout_bytes", json_integer((json_int_t)c->truncated.stdout_bytes));
    set(j, "stderr_bytes", json_integer((json_int_t)c->truncated.stderr_bytes));
    if (c->truncated.displays)
        set(j, "displays", json_integer((json_int_t)c->truncated.displays));
    return j;
}

static json_t *receipt_json(const struct cell *c)
{
    json_t *j = json_object();

    set(j, "wall_ms", number_json(c->receipt.wall_ms));
    set(j, "cpu_ms", number_json(c->receipt.cpu_ms));
    set(j, "peak_memory", json_integer((json_int_t)c->receipt.peak_memory));
    return j;
}

json_t *cell_json(const struct cell *c, size_t summary)
{
    cleanup_free char *text = cell_summary(c, summary);
    json_t *j = json_object();
    json_t *outputs = json_array();

    for (unsigned i = 0; i < c->n_outputs; i++)
        json_array_append_new(outputs, cell_output_json(&c->outputs[i]));
    set(j, "n", json_integer(c->n));
    set(j, "code", cell_text_json(c->code, c->code_len));
    set(j, "status", json_string(cell_status_name(c->status)));
    set(j, "outputs", outputs);
    if (c->error.name)
        set(j, "error", cell_error_json(c));
    if (c->limit.kind != LIMIT_KIND_NONE)
        set(j, "limit", limit_json(c));
    set(j, "files", files_json(c));
    if (c->truncated.stdout_bytes || c->truncated.stderr_bytes || c->truncated.displays)
        set(j, "truncated", truncated_json(c));
    set(j, "receipt", receipt_json(c));
    if (c->restored)
        set(j, "restored_to", json_integer(c->restored_to));
    if (c->undone)
        set(j, "undone", json_true());
    set(j, "summary", string_json(text));
    return j;
}

void cell_json_add_end(json_t *cell, const struct cell *c)
{
    if (c->left)
        set(cell, "exit", json_pack("{s:i}", "status", c->exit_code));
    else if (c->exit_code > 128)
        set(cell, "exit", json_pack("{s:i}", "signal", c->exit_code - 128));
    if (c->session_ended)
        set(cell, "session_ended", json_true());
}

/* ---- answers that a box shows ---- */

#define ANSWER_BYTES (1u << 20) /* parsed JSON takes some forty times its text */

/* The last one: what a __repr__ of the user's showed comes before it. */
static const struct mime_part *last_part(const struct cell *c, const char *type)
{
    for (unsigned i = c->n_outputs; i-- > 0;)
        for (unsigned j = 0; j < c->outputs[i].n_parts; j++)
            if (strcmp(c->outputs[i].parts[j].type, type) == 0)
                return &c->outputs[i].parts[j];
    return NULL;
}

static json_t *load_answer(const struct cell *c, const char *type)
{
    const struct mime_part *p = last_part(c, type);

    return p && p->len <= ANSWER_BYTES ? json_loadb(p->data, p->len, 0, NULL) : NULL;
}

static bool is_short_text(const json_t *j)
{
    const char *text = json_string_value(j);
    size_t characters = 0;

    for (size_t i = 0; text && i < json_string_length(j); i++)
        characters += ((unsigned char)text[i] & 0xC0) != 0x80;
    return text && characters <= VARIABLES_TEXT_MAX;
}

/* ---- variables ---- */

static bool is_count(const json_t *j)
{
    return json_is_integer(j) && json_integer_value(j) >= 0;
}

static bool is_shape(const json_t *j)
{
    for (size_t i = 0; i < json_array_size(j); i++)
        if (!is_count(json_array_get(j, i)))
            return false;
    return json_is_array(j);
}

static bool is_variable(const json_t *j)
{
    const json_t *shape = json_object_get(j, "shape");
    const json_t *length = json_object_get(j, "length");

    return is_short_text(json_object_get(j, "name")) && is_short_text(json_object_get(j, "type")) &&
           is_short_text(json_object_get(j, "text")) && is_count(json_object_get(j, "size")) &&
           (!shape || is_shape(shape)) && (!length || is_count(length)) &&
           json_object_size(j) == 4u + (shape || length);
}

json_t *cell_variables_json(const struct cell *c)
{
    json_t *list = load_answer(c, VARIABLES_TYPE);
    bool good = json_is_array(list) && json_array_size(list) <= VARIABLES_MAX;
    for (size_t i = 0; good && i < json_array_size(list); i++)
        good = is_variable(json_array_get(list, i));
    if (good)
        return list;
    json_decref(list);
    return NULL;
}

/* ---- the environment ---- */

/* An object of short texts with these names, and nothing else. */
static bool has_texts(const json_t *j, const char *const *names)
{
    size_t n = 0;

    for (; names[n]; n++)
        if (!is_short_text(json_object_get(j, names[n])))
            return false;
    return json_object_size(j) == n;
}

/* A list of such objects; or of short texts, where `names` is NULL. */
static bool is_list_of(const json_t *j, const char *const *names)
{
    for (size_t i = 0; i < json_array_size(j); i++) {
        const json_t *member = json_array_get(j, i);
        if (names ? !has_texts(member, names) : !is_short_text(member))
            return false;
    }
    return json_is_array(j) && json_array_size(j) <= ENVIRONMENT_LIST_MAX;
}

static bool is_environment(const json_t *j)
{
    static const char *const library[] = {"name", "import", "version", "group", "about", NULL};
    static const char *const command[] = {"name", "version", "group", "about", NULL};
    const json_t *description = json_object_get(j, "description");

    return is_short_text(json_object_get(j, "python")) &&
           is_list_of(json_object_get(j, "libraries"), library) &&
           is_list_of(json_object_get(j, "commands"), command) &&
           is_list_of(json_object_get(j, "wheels"), NULL) && json_is_string(description) &&
           json_string_length(description) <= ENVIRONMENT_DESCRIPTION_MAX &&
           json_object_size(j) == 5;
}

json_t *cell_environment_json(const struct cell *c)
{
    json_t *found = load_answer(c, ENVIRONMENT_TYPE);

    if (found && is_environment(found))
        return found;
    json_decref(found);
    return NULL;
}

/* ---- for who has had a part of it ---- */

size_t cell_display_length(const json_t *output)
{
    const char *key;
    json_t *value;
    size_t length = 0;

    json_object_foreach(json_object_get(output, "data"), key, value)
    {
        length += json_string_length(value);
    }
    return length;
}

json_t *cell_json_without(json_t *cell, const bool *shown, unsigned n)
{
    json_t *outputs = json_object_get(cell, "outputs"), *kept = NULL;
    unsigned display = 0;

    for (size_t i = 0; i < json_array_size(outputs); i++) {
        json_t *output = json_array_get(outputs, i);
        if (!json_object_get(output, "data"))
            continue;
        bool had = !shown || (display < n && shown[display]);
        display++;
        if (!had || cell_display_length(output) <= CELL_LARGE)
            continue;
        if (!kept)
            kept = json_copy(outputs);
        json_t *brief = json_copy(output);
        json_object_set_new(brief, "data", json_object());
        json_object_set_new(brief, "streamed", json_true());
        json_array_set_new(kept, i, brief);
    }
    if (!kept)
        return NULL;
    json_t *brief = json_copy(cell);
    json_object_set_new(brief, "outputs", kept);
    return brief;
}
