/* calls_upload: files into the workspace, as a raw body or as multipart/form-data.
 *
 * A body is never held: it goes from the socket into a pipe, and from there init writes it. When the pipe is
 * full the connection is not read. What cannot fit is refused before it is sent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/calls.h"
#include "gate/headers.h"
#include "gate/mcp/mcp.h"
#include "gate/multipart.h"

static int content_length(struct request *r, uint64_t *ret)
{
    const char *text = request_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);

    *ret = text ? strtoull(text, NULL, 10) : 0;
    return text != NULL;
}

/* Can it never fit? */
static bool refuse_size(struct request *r, uint64_t disk, uint64_t used)
{
    uint64_t size;

    if (!content_length(r, &size) || disk == LIMIT_NONE || (used < disk && size <= disk - used))
        return false;
    reply_error(r, 413, "no_space",
                "%llu bytes do not fit: the workspace has %llu, and %llu are used",
                (unsigned long long)size, (unsigned long long)disk, (unsigned long long)used);
    return true;
}

/* ---- PUT ---- */

struct put {
    struct transfer t;
    struct upload upload;
    char *path;
    bool existed;
};

static void put_free(struct transfer *t)
{
    struct put *p = (struct put *)t;

    upload_cancel(&p->upload);
    free(p->path);
    free(p);
}

static void put_failed(struct put *p, const struct err *e)
{
    struct request *r = p->t.request;

    transfer_over(&p->t);
    reply_file_failed(r, e, true);
}

static void on_stat(void *ctx, const struct file_answer *a)
{
    struct put *p = ctx;
    struct request *r = p->t.request;

    p->t.asked = NULL;
    if (a->e) { /* the guest was quicker */
        put_failed(p, a->e);
        return;
    }
    close(a->fd);
    json_t *file = file_json(p->path, a->size, a->mtime_ns);
    bool existed = p->existed;
    live_file_changed(p->t.live, p->path, existed ? "changed" : "created");
    transfer_over(&p->t);
    reply_json(r, existed ? 200 : 201, file);
}

static void on_put(void *ctx, const struct err *e)
{
    struct put *p = ctx;
    struct err why;

    if (e) {
        put_failed(p, e);
        return;
    }
    p->t.asked = session_ask_get(p->t.live->session, p->path, on_stat, p, &why);
    if (!p->t.asked)
        put_failed(p, &why);
}

static void on_writable(void *ctx)
{
    struct put *p = ctx;

    request_resume(p->t.request);
}

static void on_space(void *ctx, const struct file_answer *a)
{
    struct put *p = ctx;
    struct request *r = p->t.request;
    struct live *l = p->t.live;
    struct err e;

    p->t.asked = NULL;
    if (a->e) {
        put_failed(p, a->e);
    } else if (refuse_size(r, l->limits.disk, a->used_bytes)) {
        transfer_over(&p->t);
    } else if (upload_start(&p->upload, l, p->path, on_writable, on_put, p, &e) < 0) {
        put_failed(p, &e);
    } else {
        request_resume(r);
    }
}

static void on_looked(void *ctx, const struct file_answer *a)
{
    struct put *p = ctx;
    struct err e;

    p->existed = !a->e;
    if (!a->e)
        close(a->fd);
    p->t.asked = session_ask_space(p->t.live->session, on_space, p, &e);
    if (!p->t.asked)
        put_failed(p, &e);
}

static void put_begin(struct request *r)
{
    struct live *l = live_asked(r);
    char *path;
    struct err e;

    if (!l)
        return;
    if (header_file_path(r->params[1], &path, &e) < 0) {
        reply_error(r, 400, "bad_path", "%s", e.text);
        return;
    }
    if (refuse_size(r, l->limits.disk, 0)) {
        free(path);
        return;
    }
    struct put *p = transfer_new(l, r, sizeof(*p), put_free);
    p->path = path;
    p->t.asked = session_ask_get(l->session, path, on_looked, p, &e);
    if (!p->t.asked)
        put_failed(p, &e);
    else
        r->stalled = true;
}

static size_t put_piece(struct request *r, const char *data, size_t len)
{
    struct put *p = r->work;
    size_t taken = upload_write(&p->upload, data, len);

    r->stalled = taken < len;
    return taken;
}

static void put_end(struct request *r)
{
    struct put *p = r->work;

    upload_finish(&p->upload);
}

const struct body_sink sink_upload = {put_begin, put_piece, put_end};

/* ---- POST, one file after the other ---- */

struct form {
    struct transfer t;
    struct multipart *parser;
    struct upload upload;
    struct buf waiting; /* contents that the pipe did not take */
    char *path;         /* of the file that is under way; NULL: none, or a field that is no file */
    bool settling;      /* its contents are over, and init has not answered */
    bool over;          /* the body */
    json_t *files;
};

static void form_free(struct transfer *t)
{
    struct form *f = (struct form *)t;

    upload_cancel(&f->upload);
    multipart_free(f->parser);
    buf_done(&f->waiting);
    free(f->path);
    json_decref(f->files);
    free(f);
}

static void form_failed(struct form *f, const struct err *e)
{
    struct request *r = f->t.request;

    transfer_over(&f->t);
    reply_file_failed(r, e, true);
}

static void form_done(struct form *f)
{
    struct request *r = f->t.request;
    json_t *files = json_incref(f->files);

    mcp_files_changed(r->gate, r->holder, f->t.live->id, files);
    transfer_over(&f->t);
    if (json_array_size(files) > 0) {
        reply_json(r, 201, page_json(files, NULL));
        return;
    }
    json_decref(files);
    reply_error(r, 400, "bad_request", "no part of the form is a file: give it a \"filename\"");
}

static void on_form_stat(void *ctx, const struct file_answer *a)
{
    struct form *f = ctx;

    f->t.asked = NULL;
    if (a->e) {
        form_failed(f, a->e);
        return;
    }
    close(a->fd);
    json_array_append_new(f->files, file_json(f->path, a->size, a->mtime_ns));
    free(f->path);
    f->path = NULL;
    f->settling = false;
    if (f->over)
        form_done(f);
    else
        request_resume(f->t.request);
}

static void on_form_put(void *ctx, const struct err *e)
{
    struct form *f = ctx;
    struct err why;

    if (e) {
        form_failed(f, e);
        return;
    }
    f->t.asked = session_ask_get(f->t.live->session, f->path, on_form_stat, f, &why);
    if (!f->t.asked)
        form_failed(f, &why);
}

static bool form_flush(struct form *f);

static void on_form_writable(void *ctx)
{
    struct form *f = ctx;

    if (f->over)
        form_flush(f); /* nobody else will: the body has been read */
    else
        request_resume(f->t.request);
}

/* The parser's calls. An answer may be given by them; the form is gone then, and they stop the parser. */
static int part_begin(void *ctx, const char *name, const char *filename)
{
    struct form *f = ctx;
    struct request *r = f->t.request;
    struct err e;
    (void)name;

    if (!filename || !filename[0]) /* a field, or one for a file that was left empty */
        return 0;
    if (header_check_path(filename, strlen(filename), &e) < 0) {
        reply_error(r, 400, "bad_path", "%s", e.text);
        return -1;
    }
    f->path = xstrdup(filename);
    if (upload_start(&f->upload, f->t.live, f->path, on_form_writable, on_form_put, f, &e) < 0) {
        reply_file_failed(r, &e, true);
        return -1;
    }
    return 0;
}

static int part_data(void *ctx, const char *data, size_t len)
{
    struct form *f = ctx;

    if (!f->path)
        return 0;
    size_t taken = f->waiting.len > 0 ? 0 : upload_write(&f->upload, data, len);
    if (taken < len)
        buf_add(&f->waiting, data + taken, len - taken); /* at most what one read gave */
    return 0;
}

/* Stop here until init has it: it takes only so many at once. */
static int part_end(void *ctx)
{
    struct form *f = ctx;

    if (!f->path)
        return 0;
    f->settling = true;
    return 1;
}

static void form_begin(struct request *r)
{
    static const struct multipart_events events = {part_begin, part_data, part_end};
    const char *type = request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
    struct live *l = live_asked(r);
    struct err e;

    if (!l || refuse_size(r, l->limits.disk, 0))
        return;
    struct form *f = transfer_new(l, r, sizeof(*f), form_free);
    f->files = json_array();
    f->parser = multipart_new(type ? type : "", &events, f, &e);
    if (!f->parser) {
        transfer_over(&f->t);
        reply_error(r, 415, "unsupported_media_type", "%s", e.text);
    }
}

/* What waits for the pipe; then the end of the file. true: nothing waits. */
static bool form_flush(struct form *f)
{
    if (f->waiting.len > 0) {
        buf_drop(&f->waiting, upload_write(&f->upload, f->waiting.data, f->waiting.len));
        if (f->waiting.len > 0)
            return false;
    }
    if (f->settling && f->upload.fd >= 0)
        upload_finish(&f->upload);
    return !f->settling;
}

static size_t form_piece(struct request *r, const char *data, size_t len)
{
    struct form *f = r->work;
    size_t at = 0;
    struct err e = {0};

    while (at < len) {
        if (!form_flush(f)) {
            r->stalled = true;
            return at;
        }
        ssize_t n = multipart_feed(f->parser, data + at, len - at, &e);
        if (n < 0) {
            if (!r->response)
                reply_error(r, 400, "bad_request", "%s", e.text);
            transfer_over(&f->t);
            return len;
        }
        at += (size_t)n;
    }
    form_flush(f);
    return at;
}

static void form_end(struct request *r)
{
    struct form *f = r->work;
    struct err e;

    if (multipart_finish(f->parser, &e) < 0) {
        transfer_over(&f->t);
        reply_error(r, 400, "bad_request", "%s", e.text);
        return;
    }
    f->over = true;
    if (form_flush(f))
        form_done(f);
}

const struct body_sink sink_multipart = {form_begin, form_piece, form_end};
