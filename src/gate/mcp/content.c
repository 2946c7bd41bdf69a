/* content: what came of a cell, as blocks that a model can be shown.
 *
 * A box chooses everything that is in here. Its pictures are never decoded: their headers are looked at, and what is
 * larger than it may be is left out, and the text says so.
 */
#include <nettle/base64.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gate/headers.h"
#include "gate/mcp/tools.h"
#include "session/cell_json.h"
#include "session/utf8.h"
#include "session/words.h"

#define SHORT_TEXT (1u << 20)
#define FIRST_WITH_LINKS "2025-06-18" /* revisions are dates, and sort as texts do */

/* ---- blocks ---- */

json_t *content_text(const char *text, size_t len)
{
    return json_pack("{s:s,s:o}", "type", "text", "text", cell_text_json(len ? text : "", len));
}

static json_t *base64_json(const char *bytes, size_t len)
{
    cleanup_free char *text = xcalloc(1, BASE64_ENCODE_RAW_LENGTH(len) + 1);

    base64_encode_raw(text, len, (const uint8_t *)bytes);
    return json_stringn_nocheck(text, BASE64_ENCODE_RAW_LENGTH(len));
}

json_t *content_picture(const char *type, const char *bytes, size_t len)
{
    return json_pack("{s:s,s:o,s:s}", "type", "image", "data", base64_json(bytes, len), "mimeType",
                     type);
}

static json_t *media_type_json(const char *path)
{
    const char *type = header_media_type(path);

    return json_stringn(type, strcspn(type, ";"));
}

static json_t *uri_json(const char *session, const char *path)
{
    cleanup_buf struct buf uri = {0};

    mcp_uri_add(&uri, session, path);
    return json_stringn(uri.data, uri.len);
}

json_t *content_link(const char *session, const char *path, const json_t *size)
{
    json_t *link =
        json_pack("{s:s,s:o,s:o,s:o}", "type", "resource_link", "uri", uri_json(session, path),
                  "name", text_json(path), "mimeType", media_type_json(path));

    if (size)
        json_object_set(link, "size", (json_t *)(uintptr_t)size);
    return link;
}

bool content_has_links(const struct mcp_call *c)
{
    return strcmp(c->version, FIRST_WITH_LINKS) >= 0;
}

/* ---- text or bytes ---- */

bool content_is_text(const char *bytes, size_t len)
{
    size_t whole = utf8_whole(bytes, len);

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if ((c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\f' && c != '\b' &&
             c != '\033') ||
            c == 0x7F)
            return false;
    }
    return utf8_valid(bytes, whole) == whole;
}

/* Bytes that it takes in JSON. */
static size_t escaped_len(const char *text, size_t len)
{
    size_t n = len;

    for (size_t i = 0; i < len; i++)
        n += text[i] == '\033' ? 5
                               : text[i] == '"' || text[i] == '\\' || (unsigned char)text[i] < ' ';
    return n;
}

json_t *content_resource(const char *uri, const char *type, const char *bytes, size_t len)
{
    /* A message has a bound with most clients: of a long text whichever form is shorter is given. */
    bool text = content_is_text(bytes, len) && utf8_valid(bytes, len) == len &&
                (len <= SHORT_TEXT || escaped_len(bytes, len) <= BASE64_ENCODE_RAW_LENGTH(len));
    json_t *j = json_pack("{s:s,s:s%}", "uri", uri, "mimeType", type, strcspn(type, ";"));

    if (text)
        json_object_set_new(j, "text", cell_text_json(bytes, len));
    else
        json_object_set_new(j, "blob", base64_json(bytes, len));
    return j;
}

/* ---- pictures ---- */

static unsigned big_endian(const char *at, unsigned bytes)
{
    unsigned n = 0;

    while (bytes-- > 0)
        n = n << 8 | (unsigned char)*at++;
    return n;
}

static bool is_png(const char *b, size_t len, unsigned *ret_width, unsigned *ret_height)
{
    static const char head[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    if (len < 24 || memcmp(b, head, sizeof(head) - 1) != 0)
        return false;
    *ret_width = big_endian(b + 16, 4);
    *ret_height = big_endian(b + 20, 4);
    return true;
}

/* Segments follow one another, each with its length, up to the frame's, which has the size. */
static bool is_jpeg(const char *b, size_t len, unsigned *ret_width, unsigned *ret_height)
{
    size_t at = 2;

    if (len < 4 || memcmp(b, "\xFF\xD8\xFF", 3) != 0)
        return false;
    while (len - at >= 9 && (unsigned char)b[at] == 0xFF) {
        unsigned char kind = (unsigned char)b[at + 1];
        bool frame = kind >= 0xC0 && kind <= 0xCF && kind != 0xC4 && kind != 0xC8 && kind != 0xCC;
        if (frame) {
            *ret_height = big_endian(b + at + 5, 2);
            *ret_width = big_endian(b + at + 7, 2);
            return true;
        }
        size_t size = kind == 0xFF ? 1 : 2 + (size_t)big_endian(b + at + 2, 2);
        if (size > len - at)
            return false;
        at += size;
    }
    return false;
}

const char *content_picture_type(const char *bytes, size_t len, unsigned *ret_width,
                                 unsigned *ret_height)
{
    if (is_png(bytes, len, ret_width, ret_height))
        return "image/png";
    return is_jpeg(bytes, len, ret_width, ret_height) ? "image/jpeg" : NULL;
}

/* ---- a cell ---- */

struct cell_content {
    json_t *blocks;
    struct buf text;
    unsigned pictures; /* shown */
    unsigned more;     /* beyond those that may be */
    unsigned refused;  /* that are not what they may be, and why the first is not */
    const char *why;
};

/* Why it is not shown, or NULL: its block is there. */
static const char *add_picture(struct cell_content *c, const json_t *base64)
{
    struct base64_decode_ctx ctx;
    size_t len = json_string_length(base64), got = BASE64_DECODE_LENGTH(len);
    unsigned width = 0, height = 0;

    if (got > PICTURE_BYTES + 3)
        return "larger than 1 MiB";
    cleanup_free char *bytes = xcalloc(1, got + 1);
    base64_decode_init(&ctx);
    if (!base64_decode_update(&ctx, &got, (uint8_t *)bytes, len, json_string_value(base64)) ||
        !base64_decode_final(&ctx))
        return "neither PNG nor JPEG";
    const char *type = content_picture_type(bytes, got, &width, &height);
    if (!type || width == 0 || height == 0)
        return "neither PNG nor JPEG";
    if (width > PICTURE_SIDE || height > PICTURE_SIDE)
        return "too many pixels";
    json_array_append_new(
        c->blocks, json_pack("{s:s,s:O,s:s}", "type", "image", "data", base64, "mimeType", type));
    c->pictures++;
    return NULL;
}

static void add_pictures(struct cell_content *c, const json_t *outputs)
{
    const json_t *output;
    size_t i;

    json_array_foreach(outputs, i, output)
    {
        const json_t *data = json_object_get(output, "data");
        const json_t *picture = json_object_get(data, "image/png");
        if (!picture)
            picture = json_object_get(data, "image/jpeg");
        if (!json_is_string(picture))
            continue;
        if (c->pictures == PICTURES_MAX) {
            c->more++;
            continue;
        }
        const char *why = add_picture(c, picture);
        c->refused += why != NULL;
        c->why = c->why ? c->why : why;
    }
    if (c->refused > 0)
        buf_add_fmt(&c->text, "\nnote: %u of the pictures cannot be shown here: %s", c->refused,
                    c->why);
    if (c->more > 0)
        buf_add_fmt(&c->text, "\nnote: %u more pictures are not shown: %d are the most of one call",
                    c->more, PICTURES_MAX);
}

static bool is_there(const json_t *file)
{
    const char *change = json_string_value(json_object_get(file, "change"));

    return change && strcmp(change, "deleted") != 0;
}

static void add_links(struct cell_content *c, const json_t *files, const char *session)
{
    const json_t *file;
    unsigned links = 0, more = 0;
    size_t i;

    json_array_foreach(files, i, file)
    {
        const char *path = json_string_value(json_object_get(file, "path"));
        if (!path || !is_there(file))
            continue;
        if (links++ < LINKS_MAX)
            json_array_append_new(c->blocks,
                                  content_link(session, path, json_object_get(file, "size")));
        else
            more++;
    }
    if (more > 0)
        buf_add_fmt(&c->text, "\nnote: %u more files are not linked; list_files names them", more);
}

json_t *content_cell(const struct mcp_call *call, const json_t *cell, const char *session,
                     bool made)
{
    const json_t *summary = json_object_get(cell, "summary");
    struct cell_content c = {.blocks = json_array()};

    if (made)
        buf_add_fmt(&c.text, "session: %s\n\n", session);
    buf_add(&c.text, json_string_value(summary), json_string_length(summary));
    add_pictures(&c, json_object_get(cell, "outputs"));
    if (content_has_links(call))
        add_links(&c, json_object_get(cell, "files"), session);
    if (json_is_true(json_object_get(cell, "session_ended")))
        buf_add_text(&c.text, "\nnote: leave \"session\" out to begin a new session");
    json_array_insert_new(c.blocks, 0, content_text(c.text.data, c.text.len));
    buf_done(&c.text);
    return c.blocks;
}

/* ---- the same for programs ---- */

static json_t *file_structured(const json_t *file, const char *session)
{
    static const char *const members[] = {"path", "change", "size"};
    const char *path = json_string_value(json_object_get(file, "path"));
    json_t *j = json_object();

    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        json_t *value = json_object_get(file, members[i]);
        if (value)
            json_object_set(j, members[i], value);
    }
    if (path && is_there(file))
        json_object_set_new(j, "uri", uri_json(session, path));
    return j;
}

/* An object without what is null: a schema has one type for each. */
static json_t *without_nulls(const json_t *object)
{
    json_t *j = json_object();
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!json_is_null(value))
            json_object_set(j, key, value);
    }
    return j;
}

json_t *content_cell_structured(const json_t *cell, const char *session)
{
    static const char *const same[] = {"restored_to", "session_ended"};
    static const char *const objects[] = {"limit", "truncated"};
    const json_t *files = json_object_get(cell, "files"), *file;
    size_t n = json_array_size(files), i;
    json_t *list = json_array();
    json_t *j =
        json_pack("{s:s,s:O,s:O,s:o}", "session", session, "cell", json_object_get(cell, "n"),
                  "status", json_object_get(cell, "status"), "files", list);

    json_array_foreach(files, i, file)
    {
        if (i < FILES_MAX)
            json_array_append_new(list, file_structured(file, session));
    }
    if (n > FILES_MAX)
        json_object_set_new(j, "files_left_out", json_integer((json_int_t)(n - FILES_MAX)));
    for (i = 0; i < sizeof(same) / sizeof(*same); i++)
        if (json_object_get(cell, same[i]))
            json_object_set(j, same[i], json_object_get(cell, same[i]));
    for (i = 0; i < sizeof(objects) / sizeof(*objects); i++)
        if (json_object_get(cell, objects[i]))
            json_object_set_new(j, objects[i], without_nulls(json_object_get(cell, objects[i])));
    return j;
}
