/* calls_files: files out of the workspace: one, a list, all of them as a zip; and away with one.
 *
 * init opens and passes descriptors of regular files; what a guest does to a file while it is sent can only
 * make the answer end early.
 */
#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "gate/calls.h"
#include "gate/headers.h"
#include "gate/inner.h"
#include "gate/mcp/mcp.h"
#include "gate/zip.h"

#define BLOCK (64u << 10)
#define ARCHIVES_MAX 4 /* of one session, at once */
#define ZIP_NAMES 4
#define ENTRY_BYTES 64 /* of a list, beside its path */
#define ZIP_BYTES                                                                                  \
    (640u << 10) /* of an archive that is being made: its compressor, a piece, what comes out */

static void plain_free(struct transfer *t)
{
    free(t);
}

/* The session and the path of a call, or NULL and the request is answered. */
static struct live *asked_file(struct request *r, char **ret_path)
{
    struct live *l = live_asked(r);
    struct err e;

    if (!l)
        return NULL;
    if (header_file_path(r->params[1], ret_path, &e) < 0) {
        reply_error(r, 400, "bad_path", "%s", e.text);
        return NULL;
    }
    return l;
}

static void failed(struct transfer *t, const struct err *e)
{
    struct request *r = t->request;

    transfer_over(t);
    reply_file_failed(r, e, false);
}

/* ---- one file ---- */

struct fetch {
    struct transfer t;
    char *path;
};

static void fetch_free(struct transfer *t)
{
    struct fetch *f = (struct fetch *)t;

    free(f->path);
    free(f);
}

static void http_time(uint64_t ns, char *ret, size_t size)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(ret, size, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

static void file_headers(struct MHD_Response *response, const struct fetch *f,
                         const struct file_answer *a)
{
    cleanup_buf struct buf disposition = {0};
    char modified[64];

    header_disposition(&disposition, f->path);
    http_time(a->mtime_ns, modified, sizeof(modified));
    response_begin(response, header_media_type(f->path));
    response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, buf_text(&disposition));
    response_header(response, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
    response_header(response, MHD_HTTP_HEADER_LAST_MODIFIED, modified);
    /* Should a browser show it after all: as a page of no one's, which can run nothing. */
    response_header(response, "Content-Security-Policy", "sandbox; default-src 'none'");
}

static void send_range(struct fetch *f, const struct file_answer *a)
{
    struct request *r = f->t.request;
    const char *range = request_header(r, MHD_HTTP_HEADER_RANGE);
    uint64_t first = 0, last = 0;
    char text[80];
    int part = range ? header_range(range, a->size, &first, &last) : 0;

    if (r->inner) {
        json_t *file = file_json(f->path, a->size, a->mtime_ns);
        transfer_over(&f->t);
        inner_reply_file(r, file, a->fd, a->size);
        return;
    }
    if (part < 0) {
        close(a->fd);
        transfer_over(&f->t);
        snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)a->size);
        reply_error(r, 416, "bad_range", "the file has %llu bytes", (unsigned long long)a->size);
        response_header(r->response, MHD_HTTP_HEADER_CONTENT_RANGE, text);
        return;
    }
    struct MHD_Response *response = MHD_create_response_from_fd_at_offset64(
        part ? last - first + 1 : a->size, a->fd, part ? first : 0);
    if (!response)
        bug("out of memory (a file)");
    file_headers(response, f, a);
    if (part) {
        snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)first,
                 (unsigned long long)last, (unsigned long long)a->size);
        response_header(response, MHD_HTTP_HEADER_CONTENT_RANGE, text);
    }
    request_reply(r, part ? 206 : 200, response);
    transfer_sending(&f->t);
}

static void on_opened(void *ctx, const struct file_answer *a)
{
    struct fetch *f = ctx;

    f->t.asked = NULL;
    if (a->e)
        failed(&f->t, a->e);
    else
        send_range(f, a);
}

void call_file(struct request *r)
{
    char *path;
    struct err e;
    struct live *l = asked_file(r, &path);

    if (!l)
        return;
    struct fetch *f = transfer_new(l, r, sizeof(*f), fetch_free);
    f->path = path;
    f->t.asked = session_ask_get(l->session, path, on_opened, f, &e);
    if (!f->t.asked)
        failed(&f->t, &e);
}

/* ---- away ---- */

static void on_deleted(void *ctx, const struct file_answer *a)
{
    struct transfer *t = ctx;
    struct request *r = t->request;

    t->asked = NULL;
    if (a->e) {
        failed(t, a->e);
        return;
    }
    mcp_list_changed(r->gate, r->holder, "resources");
    transfer_over(t);
    reply_empty(r, 204);
}

void call_file_delete(struct request *r)
{
    char *path;
    struct err e;
    struct live *l = asked_file(r, &path);

    if (!l)
        return;
    struct transfer *t = transfer_new(l, r, sizeof(*t), plain_free);
    t->asked = session_ask_delete(l->session, path, on_deleted, t, &e);
    free(path);
    if (!t->asked)
        failed(t, &e);
}

/* ---- a list ---- */

struct listed {
    char *path;
    uint64_t size, mtime_ns;
};

struct list {
    struct transfer t;
    struct listed *files;
    unsigned n, cap;
    unsigned limit;
    char *after;
    uint64_t bytes, held;
    /* as a zip: */
    bool archive;
    struct zip *zip;
    uint64_t size; /* of the files that were put in */
    unsigned next;
    bool in_file, over;
};

static void list_free(struct transfer *t)
{
    struct list *l = (struct list *)t;

    request_holds(t->request, &l->held, 0);
    for (unsigned i = 0; i < l->n; i++)
        free(l->files[i].path);
    free(l->files);
    free(l->after);
    if (l->zip)
        zip_free(l->zip);
    free(l);
}

static void on_entry(void *ctx, const char *path, uint64_t size, uint64_t mtime_ns)
{
    struct list *l = ctx;

    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->files = realloc(l->files, l->cap * sizeof(*l->files));
        if (!l->files)
            bug("out of memory (a list of files)");
    }
    l->files[l->n++] = (struct listed){xstrdup(path), size, mtime_ns};
    l->bytes += ENTRY_BYTES + strlen(path);
    request_holds(l->t.request, &l->held, l->bytes);
}

/* A cursor is the last path, in letters that any client carries back unharmed. */
static json_t *cursor(const char *path)
{
    size_t len = strlen(path);
    cleanup_free char *text = xcalloc(1, BASE64_ENCODE_RAW_LENGTH(len) + 1);

    base64_encode_raw(text, len, (const uint8_t *)path);
    for (char *c = text; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
    text[strcspn(text, "=")] = '\0';
    return json_string(text);
}

static char *from_cursor(const char *text)
{
    struct base64_decode_ctx ctx;
    size_t len = strlen(text), got = BASE64_DECODE_LENGTH(len);
    cleanup_free char *plain = xstrdup(text);
    char *path = xcalloc(1, got + 1);

    for (char *c = plain; *c; c++)
        *c = *c == '-' ? '+' : *c == '_' ? '/' : *c;
    base64_decode_init(&ctx);
    if (!base64_decode_update(&ctx, &got, (uint8_t *)path, len, plain) || strlen(path) != got) {
        free(path);
        return NULL;
    }
    return path;
}

static void on_listed(void *ctx, const struct file_answer *a)
{
    struct list *l = ctx;
    struct request *r = l->t.request;
    json_t *data = json_array(), *next = NULL;
    const struct listed *last = NULL;

    l->t.asked = NULL;
    if (a->e && a->e->code != E2BIG) {
        json_decref(data);
        failed(&l->t, a->e);
        return;
    }
    for (unsigned i = 0; i < l->n; i++) {
        const struct listed *f = &l->files[i];
        if (l->after && strcmp(f->path, l->after) <= 0)
            continue;
        if (json_array_size(data) == l->limit) {
            next = cursor(last->path);
            break;
        }
        json_array_append_new(data, file_json(f->path, f->size, f->mtime_ns));
        last = f;
    }
    transfer_over(&l->t);
    reply_json(r, 200, page_json(data, next));
}

/* ---- all of them ---- */

static void on_zip_file(void *ctx, const struct file_answer *a)
{
    struct list *l = ctx;
    const struct listed *f = &l->files[l->next++];
    struct err e;

    l->t.asked = NULL;
    /* One that has vanished since it was listed is simply not in it. */
    if (!a->e) {
        l->size += a->size;
        l->in_file = zip_file(l->zip, f->path, a->fd, a->size, a->mtime_ns, &e) == 0;
    }
    request_resume(l->t.request);
}

/* Are there more bytes than a workspace holds? One file can be a hole of exabytes, to be read and compressed
 * for ever. Several names may be of one file. */
static bool is_hollow(const struct list *l, uint64_t size)
{
    uint64_t disk = l->t.live->limits.disk;

    return disk != LIMIT_NONE && size / ZIP_NAMES > disk;
}

/* 1: there may be something to send; 0: it waits; -1: failed. */
static int zip_more(struct list *l)
{
    struct err e;

    if (is_hollow(l, l->size)) /* they were not when they were listed */
        return -1;
    if (l->in_file) {
        int r = zip_step(l->zip, &e);
        l->in_file = r > 0;
        return r < 0 ? -1 : 1;
    }
    if (l->next == l->n) {
        l->over = true;
        return zip_close(l->zip, &e) < 0 ? -1 : 1;
    }
    l->t.asked = session_ask_get(l->t.live->session, l->files[l->next].path, on_zip_file, l, &e);
    return l->t.asked ? 0 : -1;
}

static ssize_t read_zip(void *ctx, uint64_t pos, char *to, size_t max)
{
    struct request *r = ctx;
    struct list *l = r->work;
    (void)pos;

    if (r->gone || !l)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    struct buf *out = zip_out(l->zip);
    if (out->len == 0) {
        int more = l->over ? -1 : zip_more(l);
        if (more < 0)
            return l->over ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
        if (more == 0)
            request_pause(r);
        else
            request_yield(r); /* a piece takes milliseconds: everybody else comes before the next */
        return 0;
    }
    size_t n = out->len < max ? out->len : max;
    memcpy(to, out->data, n);
    buf_drop(out, n);
    return (ssize_t)n;
}

static uint64_t size_of(const struct list *l)
{
    uint64_t size = 0;

    for (unsigned i = 0; i < l->n; i++)
        size = l->files[i].size < UINT64_MAX - size ? size + l->files[i].size : UINT64_MAX;
    return size;
}

static void on_zip_listed(void *ctx, const struct file_answer *a)
{
    struct list *l = ctx;
    struct request *r = l->t.request;

    l->t.asked = NULL;
    if (a->e) { /* also when there are too many to list: half of a workspace is none */
        failed(&l->t, a->e);
        return;
    }
    if (is_hollow(l, size_of(l))) {
        transfer_over(&l->t);
        reply_error(r, 409, "not_accessible",
                    "the files are longer than the workspace is large: some have holes; fetch them "
                    "one by one");
        return;
    }
    /* An archive has its names a second time, at its end. */
    request_holds(r, &l->held, 2 * l->bytes + ZIP_BYTES);
    if (!request_has_room(r)) {
        transfer_over(&l->t);
        reply_later(r, 503, 1, "busy", "too many large requests and answers are under way");
        return;
    }
    r->answered_us = clock_now_us();
    l->zip = zip_new();
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_zip, r, NULL);
    response_begin(response, "application/zip");
    response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION,
                    "attachment; filename=\"workspace.zip\"");
    request_reply(r, 200, response);
    transfer_sending(&l->t);
}

static unsigned archives_of(const struct live *live)
{
    unsigned n = 0;

    for (const struct transfer *t = live->transfers; t; t = t->next)
        n += t->free == list_free && ((const struct list *)t)->archive;
    return n;
}

void call_files(struct request *r)
{
    const char *archive = request_query(r, "archive");
    const char *after = request_query(r, "after");
    char *path = NULL;
    struct live *live = live_asked(r);
    unsigned limit;
    struct err e;

    if (!live || ask_page(r, &limit) < 0)
        return;
    if (archive && strcmp(archive, "zip") != 0) {
        reply_error(r, 400, "bad_request", "the only archive is \"zip\"");
        return;
    }
    if (after && !(path = from_cursor(after))) {
        reply_error(r, 400, "bad_request", "\"after\" must be the \"next\" of an earlier answer");
        return;
    }
    if (archive && archives_of(live) >= ARCHIVES_MAX) {
        free(path);
        reply_later(r, 429, 5, "too_many_archives", "%d archives of this session are under way",
                    ARCHIVES_MAX);
        return;
    }
    struct list *l = transfer_new(live, r, sizeof(*l), list_free);
    l->archive = archive != NULL;
    l->limit = limit;
    l->after = path;
    l->t.asked =
        session_ask_list(live->session, on_entry, archive ? on_zip_listed : on_listed, l, &e);
    if (!l->t.asked)
        failed(&l->t, &e);
}
