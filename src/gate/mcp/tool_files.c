/* tool_files: list_files, read_file, write_file. */
#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#include "gate/headers.h"
#include "gate/mcp/tools.h"
#include "session/sanitise.h"
#include "session/utf8.h"
#include "session/words.h"

#define LIST_PAGE 200
#define LIST_TEXT (16u << 10) /* of a page, as text; all of it is in the structured content */
#define NAME_SHOWN 1000
#define READ_DEFAULT (64u << 10)
#define READ_MAX (1u << 20)

/* What follows the session in the address of a file. */
static char *file_address(const char *path)
{
    cleanup_buf struct buf address = {0};

    buf_add_text(&address, "/files/");
    uri_add(&address, path, strlen(path), true);
    buf_text(&address);
    return buf_steal(&address);
}

/* The path of a call; NULL: it is answered, and *w is gone. */
static const char *asked_path(struct work *w)
{
    const char *path = tool_path(tool_text(w->arguments, "path"));
    struct err e;

    if (header_check_path(path, strlen(path), &e) == 0)
        return path;
    work_failed(w, "\"path\": %s. It is relative to /mnt/data", e.text);
    return NULL;
}

/* ---- list_files ---- */

/* As the text has them; the rest is counted. */
static void list_as_text(const json_t *files, struct buf *ret)
{
    const json_t *file;
    size_t i, told = 0;
    char size[WORDS_SIZE], name[NAME_SHOWN];

    json_array_foreach(files, i, file)
    {
        if (ret->len > LIST_TEXT)
            break;
        /* A box chooses its names: none is to look like a line of ours. */
        sanitise_name(json_string_value(json_object_get(file, "path")), name, sizeof(name));
        buf_add_fmt(ret, "%s (%s)\n", name,
                    words_size((uint64_t)json_integer_value(json_object_get(file, "size")), size));
        told++;
    }
    if (told < json_array_size(files))
        buf_add_fmt(ret, "… and %zu more\n", json_array_size(files) - told);
}

static void add_uris(json_t *files, const char *session)
{
    json_t *file;
    size_t i;

    json_array_foreach(files, i, file)
    {
        cleanup_buf struct buf uri = {0};
        mcp_uri_add(&uri, session, json_string_value(json_object_get(file, "path")));
        json_object_set_new(file, "uri", json_stringn(uri.data, uri.len));
    }
}

static void no_cursor(struct work *w)
{
    work_failed(w, "\"cursor\" must be the \"next\" of an earlier answer");
}

static void on_listed(struct work *w, const struct inner_answer *a)
{
    json_t *files = json_object_get(a->body, "data"), *next = json_object_get(a->body, "next");
    cleanup_buf struct buf text = {0};

    if (a->status == 400) {
        no_cursor(w);
        return;
    }
    if (a->status != 200) {
        work_refused(w, a);
        return;
    }
    add_uris(files, w->session);
    list_as_text(files, &text);
    json_t *structured = json_pack("{s:s,s:O}", "session", w->session, "files", files);
    if (json_is_string(next)) {
        json_object_set(structured, "next", next);
        buf_add_fmt(&text, "There are more: cursor \"%s\".\n", json_string_value(next));
    }
    if (text.len == 0)
        buf_add_text(&text, "The session has no files.");
    work_result(w, json_pack("[o]", content_text(text.data, text.len)), structured, false);
}

void tool_list_files(struct mcp_call *c, const json_t *arguments)
{
    struct work *w = work_new(c, arguments, sizeof(*w), NULL);
    const char *cursor = tool_text(arguments, "cursor");
    cleanup_buf struct buf path = {0};

    if (cursor && strlen(cursor) > CURSOR_LONGEST) {
        no_cursor(w);
        return;
    }
    buf_add_fmt(&path, "/files?limit=%d", LIST_PAGE);
    if (cursor && cursor[0]) {
        buf_add_text(&path, "&after=");
        uri_add(&path, cursor, strlen(cursor), false);
    }
    work_ask(w, "GET", buf_text(&path), NULL, on_listed);
}

/* ---- read_file ---- */

struct reading {
    struct work w;
    const char *path; /* the arguments' */
    uint64_t offset, limit;
};

static json_t *read_structured(const struct reading *r, const struct inner_answer *a)
{
    return json_pack("{s:s,s:s,s:I,s:O}", "session", r->w.session, "path", r->path, "size",
                     (json_int_t)a->size, "type", json_object_get(a->body, "type"));
}

static void give_text(struct reading *r, const struct inner_answer *a)
{
    size_t len = a->len < r->limit ? a->len : r->limit;
    cleanup_buf struct buf text = {0};
    json_t *structured = read_structured(r, a);

    /* Not in the middle of a character, unless there is nothing else. */
    size_t whole = utf8_whole(a->bytes, len);
    if (whole > 0 && r->offset + len < a->size)
        len = whole;
    uint64_t end = r->offset + len;
    utf8_repair(&text, a->bytes, len);
    json_object_set_new(structured, "offset", json_integer((json_int_t)r->offset));
    json_t *content = json_pack("[o]", content_text(text.data, text.len));
    if (len > 0 && end < a->size) {
        cleanup_buf struct buf note = {0};
        json_object_set_new(structured, "next_offset", json_integer((json_int_t)end));
        buf_add_fmt(&note, "These are bytes %llu to %llu of %llu; go on with \"offset\": %llu.",
                    (unsigned long long)r->offset, (unsigned long long)end,
                    (unsigned long long)a->size, (unsigned long long)end);
        json_array_append_new(content, content_text(note.data, note.len));
    }
    work_result(&r->w, content, structured, false);
}

/* Does it begin as a picture does? Then it is given whole, or not at all. */
static bool give_picture(struct reading *r, const struct inner_answer *a)
{
    unsigned width, height;
    const char *type =
        r->offset == 0 ? content_picture_type(a->bytes, a->len, &width, &height) : NULL;

    if (!type)
        return false;
    if (a->len < a->size || a->len > PICTURE_BYTES || width > PICTURE_SIDE || height > PICTURE_SIDE)
        work_failed(&r->w,
                    "this picture (%u × %u pixels, %llu bytes) is too large to be shown as it is; "
                    "run_python shows it scaled down: from PIL import Image; "
                    "display(Image.open(\"%.1000s\"))",
                    width, height, (unsigned long long)a->size, r->path);
    else
        work_result(&r->w, json_pack("[o]", content_picture(type, a->bytes, a->len)),
                    read_structured(r, a), false);
    return true;
}

static void give_bytes(struct reading *r, const struct inner_answer *a)
{
    cleanup_buf struct buf uri = {0};

    if (r->offset > 0 || a->len < a->size) {
        work_failed(&r->w,
                    "this file (%llu bytes) is no text, and too large to be given as it is; read "
                    "it with run_python",
                    (unsigned long long)a->size);
        return;
    }
    mcp_uri_add(&uri, r->w.session, r->path);
    json_t *resource =
        content_resource(buf_text(&uri), header_media_type(r->path), a->bytes, a->len);
    work_result(&r->w, json_pack("[{s:s,s:o}]", "type", "resource", "resource", resource),
                read_structured(r, a), false);
}

/* Bytes that begin within a character are those of a text all the same. */
static bool is_text(const struct reading *r, const struct inner_answer *a)
{
    size_t from = 0;

    while (r->offset > 0 && from < 3 && from < a->len &&
           ((unsigned char)a->bytes[from] & 0xC0) == 0x80)
        from++;
    return content_is_text(a->bytes + from, a->len - from);
}

static void on_read(struct work *w, const struct inner_answer *a)
{
    struct reading *r = (struct reading *)w;

    if (a->status == 416)
        work_failed(w, "\"offset\" lies behind the end: %s", answer_message(a));
    else if (a->status != 200)
        work_refused(w, a);
    else if (give_picture(r, a))
        return;
    else if (is_text(r, a))
        give_text(r, a);
    else
        give_bytes(r, a);
}

static uint64_t asked_number(const json_t *arguments, const char *name, uint64_t otherwise)
{
    const json_t *n = json_object_get(arguments, name);

    return json_is_number(n) ? (uint64_t)json_number_value(n) : otherwise;
}

void tool_read_file(struct mcp_call *c, const json_t *arguments)
{
    struct reading *r = work_new(c, arguments, sizeof(*r), NULL);
    const char *path = asked_path(&r->w);

    if (!path)
        return;
    r->path = path;
    r->offset = asked_number(arguments, "offset", 0);
    r->limit = asked_number(arguments, "limit", READ_DEFAULT);
    cleanup_free char *address = file_address(r->path);
    work_get(&r->w, address, r->offset, READ_MAX, on_read);
}

/* ---- write_file ---- */

struct writing {
    struct work w;
    const char *path; /* the arguments' */
    struct buf contents;
};

static void writing_free(struct work *w)
{
    buf_done(&((struct writing *)w)->contents);
}

static void on_written(struct work *w, const struct inner_answer *a)
{
    const struct writing *g = (const struct writing *)w;
    cleanup_buf struct buf text = {0};

    if (a->status != 200 && a->status != 201) {
        work_refused(w, a);
        return;
    }
    bool created = a->status == 201;
    const json_t *size = json_object_get(a->body, "size");
    if (w->made)
        buf_add_fmt(&text, "session: %s\n\n", w->session);
    buf_add_fmt(&text, "%s %s (%lld bytes).", created ? "Wrote" : "Replaced", g->path,
                (long long)json_integer_value(size));
    json_t *structured = json_pack("{s:s,s:s,s:O,s:b}", "session", w->session, "path", g->path,
                                   "size", size, "created", created);
    work_result(w, json_pack("[o]", content_text(text.data, text.len)), structured, false);
}

static void on_ready(struct work *w)
{
    struct writing *g = (struct writing *)w;
    cleanup_free char *address = file_address(g->path);

    work_put(w, address, &g->contents, on_written);
}

static int decode(struct buf *ret, const json_t *base64)
{
    struct base64_decode_ctx ctx;
    size_t len = json_string_length(base64), got = BASE64_DECODE_LENGTH(len);

    base64_decode_init(&ctx);
    if (!base64_decode_update(&ctx, &got, (uint8_t *)buf_room(ret, got + 1), len,
                              json_string_value(base64)) ||
        !base64_decode_final(&ctx))
        return -1;
    ret->len = got;
    return 0;
}

void tool_write_file(struct mcp_call *c, const json_t *arguments)
{
    struct writing *g = work_new(c, arguments, sizeof(*g), writing_free);
    const json_t *text = json_object_get(arguments, "text"),
                 *base64 = json_object_get(arguments, "base64");
    const char *path = asked_path(&g->w);

    if (!path)
        return;
    g->path = path;
    if (json_is_string(text) == json_is_string(base64)) {
        work_failed(&g->w, "give the contents: either \"text\" or \"base64\"");
        return;
    }
    if (json_is_string(text))
        buf_add(&g->contents, json_string_value(text), json_string_length(text));
    else if (decode(&g->contents, base64) < 0) {
        work_failed(&g->w, "\"base64\" is not base64");
        return;
    }
    work_in_session(&g->w, on_ready);
}
