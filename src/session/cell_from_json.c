/* cell_from_json: see cell_from_json.h. */
#include "session/cell_from_json.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "session/cell.h"
#include "wire/proto.h"

#define OUTPUTS_MAX 20000
#define FILES_MAX 20000

size_t json_count_values(const char *text, size_t len)
{
    size_t n = 1;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
        else if (!in_string)
            n += text[i] == ',' || text[i] == '[' || text[i] == '{';
    }
    return n;
}

static int wrong(struct err *e, const char *member)
{
    return err_set(e, 0, "the member \"%s\" of a cell is not what it should be", member);
}

/* ---- values ---- */

static const char *status_name(int i)
{
    return cell_status_name((enum cell_status)i);
}

static const char *limit_name(int i)
{
    return limit_kind_name((enum limit_kind)i);
}

static const char *kind_name(int i)
{
    return output_kind_name((enum output_kind)i);
}

/* The number from `first` to `last` that has this name, or -1. */
static int number_of(const json_t *name, const char *(*name_of)(int), int first, int last)
{
    for (int i = first; json_is_string(name) && i <= last; i++)
        if (strcmp(name_of(i), json_string_value(name)) == 0)
            return i;
    return -1;
}

static char *copy(const json_t *text)
{
    size_t len = json_string_length(text);
    char *to = xcalloc(1, len + 1);

    memcpy(to, json_string_value(text), len);
    return to;
}

static int get_count(const json_t *object, const char *member, uint64_t *ret)
{
    const json_t *j = json_object_get(object, member);

    if (j && (!json_is_integer(j) || json_integer_value(j) < 0))
        return -1;
    *ret = j ? (uint64_t)json_integer_value(j) : 0;
    return 0;
}

/* null is for what has no number. */
static int get_number(const json_t *object, const char *member, double *ret)
{
    const json_t *j = json_object_get(object, member);

    if (!json_is_number(j) && !json_is_null(j))
        return -1;
    *ret = json_is_null(j) ? INFINITY : json_number_value(j);
    return *ret >= 0 ? 0 : -1;
}

static int digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* Base64 as RFC 4648 has it: padded, and nothing else in it. -1: it is not. */
static int decode(const char *text, size_t len, struct mime_part *p)
{
    char *to = xcalloc(1, len / 4 * 3 + 1);

    p->data = to;
    if (len % 4 != 0)
        return -1;
    for (size_t i = 0; i < len; i += 4) {
        unsigned pad = i + 4 < len ? 0 : (text[i + 3] == '=') + (text[i + 2] == '=');
        unsigned bits = 0;
        for (unsigned k = 0; k < 4; k++) {
            int d = k < 4 - pad ? digit(text[i + k]) : text[i + k] == '=' ? 0 : -1;
            if (d < 0)
                return -1;
            bits = bits << 6 | (unsigned)d;
        }
        for (unsigned k = 0; k < 3 - pad; k++)
            *to++ = (char)(bits >> (16 - 8 * k));
    }
    p->len = (size_t)(to - p->data);
    return 0;
}

/* ---- outputs ---- */

static int add_part(struct output *o, const char *type, const json_t *data)
{
    struct mime_part *p = &o->parts[o->n_parts];

    if (!part_type_ok(type, strlen(type)) || !json_is_string(data))
        return -1;
    *p = (struct mime_part){.type = xstrdup(type), .text = part_type_is_text(type)};
    o->n_parts++;
    if (!p->text)
        return decode(json_string_value(data), json_string_length(data), p);
    p->data = copy(data);
    p->len = json_string_length(data);
    return 0;
}

static int get_parts(const json_t *data, struct output *o)
{
    const char *type;
    json_t *part;

    if (!json_is_object(data) || json_object_size(data) > PARTS_MAX)
        return -1;
    o->parts = xcalloc(json_object_size(data) + 1, sizeof(*o->parts));
    json_object_foreach((json_t *)data, type, part)
    {
        if (add_part(o, type, part) < 0)
            return -1;
    }
    return 0;
}

static char *get_metadata(const json_t *object)
{
    char *text = json_is_object(object) && json_object_size(object) > 0
                     ? json_dumps(object, JSON_COMPACT)
                     : NULL;

    if (text && strlen(text) > METADATA_MAX) {
        free(text);
        return NULL;
    }
    return text;
}

static int get_output(const json_t *j, struct output *o)
{
    const json_t *type = json_object_get(j, "type");
    int kind = number_of(type, kind_name, OUTPUT_STDOUT, OUTPUT_RESULT);
    const json_t *text = json_object_get(j, "text");

    if (kind < 0)
        return -1;
    o->kind = (enum output_kind)kind;
    if (o->kind == OUTPUT_DISPLAY || o->kind == OUTPUT_RESULT) {
        o->metadata = get_metadata(json_object_get(j, "metadata"));
        return get_parts(json_object_get(j, "data"), o);
    }
    if (!json_is_string(text))
        return -1;
    o->text = copy(text);
    o->len = json_string_length(text);
    return 0;
}

int output_from_json(const json_t *j, struct output *ret, struct err *e)
{
    struct output o = {0};

    if (get_output(j, &o) < 0) {
        cell_output_done(&o);
        return wrong(e, "outputs");
    }
    *ret = o;
    return 0;
}

static int get_outputs(const json_t *list, struct cell *c)
{
    size_t n = json_array_size(list);

    if (!json_is_array(list) || n > OUTPUTS_MAX)
        return -1;
    c->outputs = xcalloc(n + 1, sizeof(*c->outputs));
    while (c->n_outputs < n) {
        unsigned i = c->n_outputs++; /* counted first: cell_free frees half of one too */
        if (get_output(json_array_get(list, i), &c->outputs[i]) < 0)
            return -1;
    }
    return 0;
}

/* ---- the rest of it ---- */

static int get_head(const json_t *j, struct cell *c)
{
    const json_t *name = json_object_get(j, "status");
    int status = number_of(name, status_name, CELL_OK, CELL_CRASHED);
    uint64_t n;

    if (status < 0 || get_count(j, "n", &n) < 0 || n > UINT32_MAX)
        return -1;
    c->status = (enum cell_status)status;
    c->n = (uint32_t)n;
    return 0;
}

static struct slice slice_of(const json_t *text)
{
    return (struct slice){json_string_value(text), json_string_length(text)};
}

static int get_error(const json_t *j, struct cell *c)
{
    const json_t *name = json_object_get(j, "name"), *value = json_object_get(j, "value");
    const json_t *traceback = json_object_get(j, "traceback");

    if (!j)
        return c->status == CELL_FAILED ? -1 : 0;
    if (!json_is_string(name) || !json_is_string(value) || !json_is_string(traceback))
        return -1;
    cell_set_error(c, slice_of(name), slice_of(value), slice_of(traceback));
    return 0;
}

static int get_limit(const json_t *j, struct cell *c)
{
    const json_t *name = json_object_get(j, "kind");

    if (!j)
        return c->status == CELL_LIMIT ? -1 : 0;
    int kind = number_of(name, limit_name, LIMIT_KIND_WALL, LIMIT_KIND_OUTPUT);
    if (kind < 0 || get_number(j, "limit", &c->limit.limit) < 0 ||
        get_number(j, "used", &c->limit.used) < 0)
        return -1;
    c->limit.kind = (enum limit_kind)kind;
    return 0;
}

static int get_sha256(const json_t *j, struct file_note *f)
{
    static const char digits[] = "0123456789abcdef";
    const char *hex = json_string_value(j);

    if (!j)
        return 0;
    if (!hex || strspn(hex, digits) != 2 * sizeof(f->sha256) ||
        json_string_length(j) != strlen(hex))
        return -1;
    for (size_t i = 0; i < sizeof(f->sha256); i++)
        f->sha256[i] = (uint8_t)((strchr(digits, hex[2 * i]) - digits) << 4 |
                                 (strchr(digits, hex[2 * i + 1]) - digits));
    f->has_sha256 = true;
    return 0;
}

static int get_file(const json_t *j, struct cell *c)
{
    const json_t *path = json_object_get(j, "path"), *change = json_object_get(j, "change");
    size_t len = json_string_length(path);
    struct file_note f = {.change = number_of(change, file_change_name, 0, FILE_DELETED)};

    if (f.change < 0 || len == 0 || len > PATH_LONGEST || strlen(json_string_value(path)) != len ||
        get_count(j, "size", &f.size) < 0 || get_sha256(json_object_get(j, "sha256"), &f) < 0)
        return -1;
    f.path = copy(path);
    cell_add_file(c, &f);
    return 0;
}

static int get_files(const json_t *list, struct cell *c)
{
    if (!json_is_array(list) || json_array_size(list) > FILES_MAX)
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (get_file(json_array_get(list, i), c) < 0)
            return -1;
    return 0;
}

static int get_truncated(const json_t *j, struct cell *c)
{
    if (j && !json_is_object(j))
        return -1;
    return get_count(j, "stdout_bytes", &c->truncated.stdout_bytes) < 0 ||
                   get_count(j, "stderr_bytes", &c->truncated.stderr_bytes) < 0 ||
                   get_count(j, "displays", &c->truncated.displays) < 0
               ? -1
               : 0;
}

static int get_receipt(const json_t *j, struct cell *c)
{
    return get_number(j, "wall_ms", &c->receipt.wall_ms) < 0 ||
                   get_number(j, "cpu_ms", &c->receipt.cpu_ms) < 0 ||
                   get_count(j, "peak_memory", &c->receipt.peak_memory) < 0
               ? -1
               : 0;
}

static int get_exit(const json_t *j, struct cell *c)
{
    const json_t *status = json_object_get(j, "status"), *signal = json_object_get(j, "signal");
    json_int_t n = json_integer_value(status ? status : signal);

    if (!j)
        return 0;
    if (!json_is_integer(status ? status : signal) || n < INT_MIN || n > INT_MAX)
        return -1;
    if (!status && (n < 1 || n > 127))
        return -1;
    c->left = status != NULL;
    c->exit_code = status ? (int)n : 128 + (int)n;
    return 0;
}

static int fill(const json_t *j, struct cell *c, struct err *e)
{
    const json_t *ended = json_object_get(j, "session_ended");
    const json_t *restored = json_object_get(j, "restored_to");
    static const struct {
        const char *member;
        int (*get)(const json_t *j, struct cell *c);
    } parts[] = {
        {"outputs", get_outputs}, {"error", get_error}, {"limit", get_limit},
        {"files", get_files},     {"exit", get_exit},   {"truncated", get_truncated},
        {"receipt", get_receipt},
    };

    if (get_head(j, c) < 0)
        return wrong(e, "status");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (parts[i].get(json_object_get(j, parts[i].member), c) < 0)
            return wrong(e, parts[i].member);
    if (ended && !json_is_boolean(ended))
        return wrong(e, "session_ended");
    c->session_ended = json_is_true(ended);
    json_int_t n = json_integer_value(restored);
    if (restored && (!json_is_integer(restored) || n < 0 || n > UINT32_MAX))
        return wrong(e, "restored_to");
    c->restored = restored != NULL;
    c->restored_to = (uint32_t)n;
    c->undone = json_is_true(json_object_get(j, "undone"));
    return 0;
}

struct cell *cell_from_json(const json_t *j, struct err *e)
{
    const json_t *code = json_object_get(j, "code");

    if (!json_is_string(code)) {
        wrong(e, "code");
        return NULL;
    }
    struct cell *c = cell_new(0, json_string_value(code), json_string_length(code));
    if (fill(j, c, e) == 0)
        return c;
    cell_free(c);
    return NULL;
}
