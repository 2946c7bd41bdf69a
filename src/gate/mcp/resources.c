/* resources: the files of a token's sessions, as retort://SESSION/PATH. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate/headers.h"
#include "gate/mcp/tools.h"
#include "gate/syntax.h"

#define SCHEME "retort://"
#define ENCODED 3 /* bytes for one, at most */
#define PAGE 500
#define SESSIONS_PER_PAGE 50
/* As base64 it fits the 10 MiB that clients take as one message. */
#define READ_MAX (7u << 20)
#define NOT_FOUND_LEGACY (-32002)

/* ---- URIs ---- */

void uri_add(struct buf *ret, const char *text, size_t len, bool slashes)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (syntax_alnum(c) || (c && strchr("-._~", c)) || (slashes && c == '/'))
            buf_add(ret, &c, 1);
        else
            buf_add_fmt(ret, "%%%02X", (unsigned char)c);
    }
}

void mcp_uri_add(struct buf *ret, const char *session, const char *path)
{
    buf_add_text(ret, SCHEME);
    uri_add(ret, session, strlen(session), false);
    buf_add(ret, "/", 1);
    uri_add(ret, path, strlen(path), true);
}

static char *decoded(const char *text, size_t len)
{
    cleanup_buf struct buf b = {0};

    if (syntax_percent_decode(&b, text, len) < 0 || (b.len > 0 && memchr(b.data, '\0', b.len)))
        return NULL;
    buf_text(&b);
    return buf_steal(&b);
}

int uri_parse(const char *uri, char **ret_session, char **ret_path)
{
    struct err ignored;

    if (strncmp(uri, SCHEME, strlen(SCHEME)) != 0)
        return -1;
    const char *session = uri + strlen(SCHEME);
    size_t len = strcspn(session, "/");
    if (len == 0 || len >= ENCODED * SESSION_ID_MAX || session[len] != '/')
        return -1;
    const char *path = session + len + 1;
    *ret_session = decoded(session, len);
    *ret_path = decoded(path, strlen(path));
    if (*ret_session && *ret_path && header_check_path(*ret_path, strlen(*ret_path), &ignored) == 0)
        return 0;
    free(*ret_session);
    free(*ret_path);
    return -1;
}

/* ---- the templates ---- */

void mcp_resources_templates(struct mcp_call *c)
{
    json_t *list = json_pack(
        "[{s:s,s:s,s:s,s:s}]", "uriTemplate", SCHEME "{session}/{+path}", "name", "file", "title",
        "A file of a session", "description",
        "A file that code has written or that was put there; path is relative to /mnt/data.");

    if (json_object_get(c->params, "cursor")) {
        json_decref(list);
        mcp_error(c, MCP_INVALID_PARAMS, NULL, "there is no such cursor");
        return;
    }
    mcp_result(c, json_pack("{s:o}", "resourceTemplates", list));
}

/* ---- the list: session by session, the newest first ---- */

struct listing {
    struct work w;
    json_t *list;
    uint64_t number; /* of the session that is looked at, among its token's */
    unsigned sessions;
};

static void listing_free(struct work *w)
{
    json_decref(((struct listing *)w)->list);
}

/* The newest one that is alive and no newer than this. */
static const struct live *session_at(const struct mcp_call *c, uint64_t number)
{
    for (const struct live *l = c->gate->lives; l; l = l->next)
        if (l->holder == c->holder && !l->once && l->open && !l->ending && l->number <= number)
            return l;
    return NULL;
}

/* `next` is where another page begins; NULL: this is the last. It is freed. */
static void give_list(struct listing *l, char *next)
{
    cleanup_free char *cursor = next;
    json_t *result = json_pack("{s:O}", "resources", l->list);
    struct mcp_call *c = work_end(&l->w);

    if (cursor)
        json_object_set_new(result, "nextCursor", json_string(cursor));
    mcp_result(c, result);
}

static json_t *resource_json(const char *session, const json_t *file)
{
    const char *path = json_string_value(json_object_get(file, "path"));
    cleanup_buf struct buf uri = {0};

    mcp_uri_add(&uri, session, path);
    return json_pack("{s:s%,s:s,s:O,s:O,s:{s:O}}", "uri", uri.data, uri.len, "name", path,
                     "mimeType", json_object_get(file, "type"), "size",
                     json_object_get(file, "size"), "annotations", "lastModified",
                     json_object_get(file, "modified_at"));
}

static void list_session(struct listing *l, uint64_t number, const char *after);

/* One that cannot be listed (it has ended meanwhile) is not in it. */
static void on_files(struct work *w, const struct inner_answer *a)
{
    struct listing *l = (struct listing *)w;
    const char *more = json_string_value(json_object_get(a->body, "next"));
    const json_t *file;
    size_t i;

    json_array_foreach(a->status == 200 ? json_object_get(a->body, "data") : NULL, i, file)
    {
        json_array_append_new(l->list, resource_json(w->session, file));
    }
    if (a->status == 200 && more)
        give_list(l, xasprintf("%llu.%s", (unsigned long long)l->number, more));
    else if (l->number == 0)
        give_list(l, NULL);
    else
        list_session(l, l->number - 1, "");
}

static void list_session(struct listing *l, uint64_t number, const char *after)
{
    const struct live *live = session_at(l->w.call, number);
    size_t n = json_array_size(l->list);
    cleanup_buf struct buf path = {0};

    if (!live) {
        give_list(l, NULL);
        return;
    }
    if (n >= PAGE || l->sessions++ >= SESSIONS_PER_PAGE) {
        give_list(l, xasprintf("%llu.", (unsigned long long)live->number));
        return;
    }
    if (live->number != number)
        after = ""; /* the session that it was about has ended */
    l->number = live->number;
    free(l->w.session);
    l->w.session = xstrdup(live->id);
    buf_add_fmt(&path, "/files?limit=%zu", PAGE - n);
    if (after[0]) {
        buf_add_text(&path, "&after=");
        uri_add(&path, after, strlen(after), false);
    }
    work_ask(&l->w, "GET", buf_text(&path), NULL, on_files);
}

void mcp_resources_list(struct mcp_call *c)
{
    const json_t *cursor = json_object_get(c->params, "cursor");
    const char *text = json_string_value(cursor);
    unsigned long long number = UINT64_MAX;
    char *end = NULL;

    errno = 0;
    if (text)
        number = strtoull(text, &end, 10);
    if (cursor && (!text || text[0] < '0' || text[0] > '9' || errno || *end != '.' ||
                   strlen(text) > CURSOR_LONGEST)) {
        mcp_error(c, MCP_INVALID_PARAMS, NULL, "there is no such cursor");
        return;
    }
    struct listing *l = work_new(c, NULL, sizeof(*l), listing_free);
    l->list = json_array();
    list_session(l, number, text ? end + 1 : "");
}

/* ---- contents ---- */

struct reading {
    struct work w;
    const char *uri; /* the call's */
    char *path;
};

static void reading_free(struct work *w)
{
    free(((struct reading *)w)->path);
}

static void not_found(struct mcp_call *c, const char *uri)
{
    mcp_error(c, c->era == MCP_MODERN ? MCP_INVALID_PARAMS : NOT_FOUND_LEGACY,
              json_pack("{s:s}", "uri", uri), "there is no such resource");
}

static void refuse(struct reading *r, const struct inner_answer *a)
{
    const char *uri = r->uri;
    bool missing = a->status == 404 || a->status == 410 || a->status == 400;
    struct mcp_call *c = work_end(&r->w);

    if (missing)
        not_found(c, uri);
    else
        mcp_error(c, MCP_INTERNAL, json_pack("{s:s}", "uri", uri), "%s", answer_message(a));
}

static void on_contents(struct work *w, const struct inner_answer *a)
{
    struct reading *r = (struct reading *)w;

    if (a->status != 200) {
        refuse(r, a);
        return;
    }
    if (a->size > READ_MAX) {
        const char *uri = r->uri;
        mcp_error(work_end(w), MCP_INVALID_PARAMS,
                  json_pack("{s:s,s:I}", "uri", uri, "size", (json_int_t)a->size),
                  "the file has %llu bytes, and %u are the most that is given as a resource; "
                  "read it in parts with read_file or run_python, or fetch it from "
                  "/v1/sessions/{sid}/files/{path}",
                  (unsigned long long)a->size, READ_MAX);
        return;
    }
    json_t *contents = content_resource(r->uri, header_media_type(r->path), a->bytes, a->len);
    struct mcp_call *c = work_end(w);
    mcp_result(c, json_pack("{s:[o]}", "contents", contents));
}

void mcp_resources_read(struct mcp_call *c)
{
    const char *uri = json_string_value(json_object_get(c->params, "uri"));
    cleanup_buf struct buf address = {0};
    char *session, *path;

    if (!uri) {
        mcp_error(c, MCP_INVALID_PARAMS, NULL, "\"uri\" must be there, and a text");
        return;
    }
    if (uri_parse(uri, &session, &path) < 0) {
        not_found(c, uri);
        return;
    }
    struct reading *r = work_new(c, NULL, sizeof(*r), reading_free);
    r->uri = uri;
    r->path = path;
    r->w.session = session;
    buf_add_text(&address, "/files/");
    uri_add(&address, path, strlen(path), true);
    work_get(&r->w, buf_text(&address), 0, READ_MAX, on_contents);
}
