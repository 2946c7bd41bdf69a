/* display: from a DISPLAY frame to an output, trusting none of it.
 *
 * A user's object chooses the types and the contents through its _repr_mimebundle_. A part whose
 * type is no type is left out; text is repaired; metadata that is not a small JSON object is
 * dropped. Only a frame that is not built as proto.h says is the interpreter's fault.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "session/inside.h"
#include "session/utf8.h"
#include "wire/fields.h"

#define TYPE_MAX 128

bool part_type_ok(const char *type, size_t len)
{
    if (len == 0 || len > TYPE_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (type[i] <= ' ' || type[i] > '~')
            return false;
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool part_type_is_text(const char *type)
{
    static const char *const others[] = {"application/json", "application/javascript",
                                         "application/xml", "application/x-latex",
                                         "application/x-tex"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(type, others[i]) == 0)
            return true;
    return strncmp(type, "text/", 5) == 0 || ends_with(type, "+json") || ends_with(type, "+xml");
}

static bool has_type(const struct output *o, const char *type, size_t len)
{
    for (unsigned i = 0; i < o->n_parts; i++)
        if (strlen(o->parts[i].type) == len && memcmp(o->parts[i].type, type, len) == 0)
            return true;
    return false;
}

static void add_part(struct output *o, struct slice type, struct slice data)
{
    struct mime_part *p = &o->parts[o->n_parts];
    struct buf b = {0};

    if (!part_type_ok(type.data, type.len) || has_type(o, type.data, type.len))
        return;
    p->type = xcalloc(1, type.len + 1);
    memcpy(p->type, type.data, type.len);
    p->text = part_type_is_text(p->type);
    buf_room(&b, data.len + 1);
    if (p->text)
        utf8_repair(&b, data.data, data.len);
    else
        buf_add(&b, data.data, data.len);
    p->len = b.len;
    p->data = buf_steal(&b);
    o->n_parts++;
}

static char *metadata_of(struct slice text)
{
    if (text.len == 0 || text.len > METADATA_MAX || utf8_valid(text.data, text.len) != text.len)
        return NULL;
    json_t *object = json_loadb(text.data, text.len, 0, NULL);
    char *again = json_is_object(object) && json_object_size(object) > 0
                      ? json_dumps(object, JSON_COMPACT)
                      : NULL;
    json_decref(object);
    return again;
}

static struct slice get_slice(struct fields *f)
{
    struct slice s;

    s.data = fields_get_bytes(f, &s.len);
    return s;
}

int display_parse(const struct frame *frame, struct output *ret)
{
    struct fields f;

    fields_init(&f, frame->data, frame->len);
    unsigned kind = fields_get_u8(&f);
    struct slice metadata = get_slice(&f);
    uint32_t count = fields_get_u32(&f);
    if (f.failed || kind > DISPLAY_RESULT || count > PARTS_MAX)
        return -1;
    struct output o = {.kind = kind == DISPLAY_RESULT ? OUTPUT_RESULT : OUTPUT_DISPLAY};
    o.parts = xcalloc(count + 1, sizeof(*o.parts));
    for (uint32_t i = 0; i < count && !f.failed; i++) {
        struct slice type = get_slice(&f);
        struct slice data = get_slice(&f);
        if (!f.failed)
            add_part(&o, type, data);
    }
    if (!fields_end(&f)) {
        cell_output_done(&o);
        return -1;
    }
    o.metadata = metadata_of(metadata);
    *ret = o;
    return 0;
}
