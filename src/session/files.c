/* files: what a box's init answers.
 *
 * init opens paths inside the box and passes descriptors; nothing here resolves a guest's path.
 * init shares the box with hostile code, so what it says is checked like everything else from a
 * box: an answer that nobody asked for is dropped, with its descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "session/inside.h"
#include "session/utf8.h"

#define NOTES_MAX 20000
#define POINTS_MAX 64
#define LIST_MAX 20000 /* entries of one list, and bytes of their paths: */
#define LIST_BYTES (8u << 20)
#define TURN 32 /* messages in one turn of the loop */

/* ---- answers ---- */

/* What init said, as far as it makes sense. */
static void put_reason(struct err *e, uint32_t error, const char *reason, size_t len)
{
    cleanup_free char *text = utf8_repaired(reason, len);
    size_t fits = utf8_fit(text, strlen(text), 255);

    e->code = error > 0 && error < 4096 ? (int)error : EIO;
    memcpy(e->text, text, fits);
    e->text[fits] = '\0';
    if (fits == 0)
        err_set(e, e->code, "the box cannot do it");
}

static bool some_are_there(const struct cell *c)
{
    for (unsigned i = 0; i < c->n_files; i++)
        if (c->files[i].change != FILE_DELETED)
            return true;
    return false;
}

static int on_done(struct session *s, uint32_t req, struct fields *f)
{
    uint32_t error = fields_get_u32(f);
    size_t len;
    const char *reason = fields_get_bytes(f, &len);
    struct err e = {0};

    if (!fields_end(f))
        return -1;
    if (s->cell && req == s->course.changes_req) {
        s->course.changes_req = 0;
        workspace_told(&s->workspace, error || some_are_there(s->cell));
        course_answer(s, AWAIT_CHANGES);
        return 0;
    }
    if (s->cell && req == s->course.points_req) {
        course_points_told(s);
        return 0;
    }
    if (s->cell && req == s->course.restore_req) {
        course_answer(s, AWAIT_RESTORE); /* there is none: the session ends */
        return 0;
    }
    struct file_request *r = request_find(s, req);
    if (!r)
        return 0;
    if (error)
        put_reason(&e, error, reason, len);
    else if (r->type == FILE_GET || r->type == FILE_SPACE)
        err_set(&e, EIO, "the box sent no answer");
    else if (r->type == FILE_PUT && !r->whole)
        err_set(&e, EPIPE, "the box stopped reading");
    else if (r->cut)
        err_set(&e, E2BIG, "the workspace has more files than retort lists");
    request_answer(r, &(struct file_answer){.e = e.code ? &e : NULL, .fd = -1});
    return 0;
}

static int on_change(struct session *s, uint32_t req, struct fields *f)
{
    struct file_note note = {.change = fields_get_u8(f)};
    size_t hash_len, len;

    note.size = fields_get_u64(f);
    const char *hash = fields_get_bytes(f, &hash_len);
    const char *path = fields_get_bytes(f, &len);
    if (!fields_end(f) || note.change > FILE_DELETED ||
        (hash_len != 0 && hash_len != sizeof(note.sha256)) || path_check(path, len))
        return -1;
    if (!s->cell || req != s->course.changes_req || s->cell->n_files >= NOTES_MAX)
        return 0;
    note.has_sha256 = hash_len != 0;
    memcpy(note.sha256, hash, hash_len);
    note.path = xcalloc(1, len + 1);
    memcpy(note.path, path, len);
    cell_add_file(s->cell, &note);
    return 0;
}

static int on_opened(struct session *s, uint32_t req, struct fields *f, struct msg *m)
{
    struct stat st;

    if (!fields_end(f))
        return -1;
    struct file_request *r = request_find(s, req);
    cleanup_fd int fd = msg_take_fd(m, 0);
    if (!r)
        return 0;
    int flags = fcntl(fd, F_GETFL); /* -1, and all of them, where there is none */
    /* A pipe or a device in place of a file could hold its reader for ever. */
    if (r->type != FILE_GET || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (flags & O_ACCMODE) == O_WRONLY || (flags & O_PATH))
        return -1;
    request_answer(
        r, &(struct file_answer){
               .fd = fd_steal(&fd),
               .size = (uint64_t)st.st_size,
               .mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec,
           });
    return 0;
}

/* We had no room for the descriptor: that is not the box's fault. */
static void on_opened_in_vain(struct session *s, const struct msg *m)
{
    struct fields f;
    struct err e;

    fields_init(&f, m->data, m->len);
    struct file_request *r = request_find(s, fields_get_u32(&f));
    err_set(&e, EMFILE, "the file cannot be opened now");
    if (r)
        request_answer(r, &(struct file_answer){.e = &e, .fd = -1});
}

/* Our ends of its channel. A file or a device in place of a pipe could hold us for ever. */
static int on_restored(struct session *s, uint32_t req, struct fields *f, struct msg *m)
{
    uint32_t n = fields_get_u32(f);
    size_t len;
    const char *missing = fields_get_bytes(f, &len);
    struct stat st;

    if (!fields_end(f) || m->n_fds != FROM_FILES)
        return -1;
    for (unsigned i = 0; i < m->n_fds; i++) {
        int flags = fcntl(m->fds[i], F_GETFL);
        if (fstat(m->fds[i], &st) < 0 || !S_ISFIFO(st.st_mode) || (flags & O_PATH) ||
            (flags & O_ACCMODE) != (i == TO_STREAM ? O_WRONLY : O_RDONLY))
            return -1;
    }
    cleanup_free char *text = utf8_repaired(missing, len);
    if (s->cell && (s->course.awaited & AWAIT_RESTORE) && req == s->course.restore_req)
        course_restored(s, n, text, m);
    return 0;
}

static int on_used(struct session *s, uint32_t req, struct fields *f)
{
    uint64_t bytes = fields_get_u64(f);
    uint64_t files = fields_get_u64(f);

    if (!fields_end(f))
        return -1;
    struct file_request *r = request_find(s, req);
    if (r && r->type != FILE_SPACE)
        return -1;
    if (r)
        request_answer(r,
                       &(struct file_answer){.fd = -1, .used_bytes = bytes, .used_files = files});
    if (r || !s->cell || req != s->course.space_req)
        return 0;
    s->course.space_req = 0;
    s->course.space_known = true;
    s->course.used_bytes = bytes;
    s->course.used_files = files;
    course_answer(s, AWAIT_SPACE);
    return 0;
}

static int on_evicted(struct session *s, uint32_t req, struct fields *f)
{
    uint32_t n = fields_get_u32(f);

    if (!fields_end(f))
        return -1;
    if (s->cell && req == s->course.evicted_req)
        course_evicted(s, n);
    return 0;
}

static int on_usage(struct session *s, uint32_t req, struct fields *f)
{
    struct meter_reading r = {0};

    r.cpu_us = fields_get_u64(f);
    r.peak = fields_get_u64(f);
    r.pids_refused = fields_get_u64(f);
    if (!fields_end(f))
        return -1;
    if (req != s->usage_req)
        return 0;
    s->usage_req = 0;
    course_usage(s, &r);
    return 0;
}

/* One entry, whose path is sound. -1: it is not in its place in the order. */
static int note_entry(struct file_request *r, const char *path, size_t len, uint64_t size,
                      uint64_t mtime_ns)
{
    if (r->n_listed >= LIST_MAX || r->listed_bytes + len > LIST_BYTES)
        r->cut = true;
    if (r->cut)
        return 0;
    if (!r->last)
        r->last = xcalloc(1, PATH_LONGEST + 1);
    /* Each path once: whoever keeps them, or makes an archive of them, need not look. */
    int order = strncmp(r->last, path, len);
    if (r->n_listed > 0 && (order > 0 || (order == 0 && strlen(r->last) >= len)))
        return -1;
    memcpy(r->last, path, len);
    r->last[len] = '\0';
    r->n_listed++;
    r->listed_bytes += len;
    r->telling = true;
    r->entry(r->ctx, r->last, size, mtime_ns);
    r->telling = false;
    return 0;
}

/* The request lives on while its entries are told; one that is forgotten meanwhile is freed here. */
static int on_entries(struct session *s, uint32_t req, struct fields *f)
{
    struct file_request *r = request_find(s, req);

    if (r && r->type != FILE_LIST)
        return -1;
    while (f->left > 0) {
        uint64_t size = fields_get_u64(f);
        uint64_t mtime_ns = fields_get_u64(f);
        size_t len;
        const char *path = fields_get_bytes(f, &len);
        if (f->failed || path_check(path, len))
            return -1;
        if (r && note_entry(r, path, len, size, mtime_ns) < 0)
            return -1;
        if (r && r->forgotten) { /* by the callback, which may also have closed the session */
            request_free(r);
            return 0;
        }
    }
    if (r)
        r->deadline_us = clock_now_us() + FILES_PATIENCE_US;
    return 0;
}

/* A gap between the first and the last, or none. */
static bool undone_well(const struct session_point *p)
{
    return p->undone_to == 0
               ? p->undone_from == 0
               : p->n < p->undone_from && p->undone_from <= p->undone_to && p->undone_to < p->up_to;
}

static int on_point(struct session *s, uint32_t req, struct fields *f)
{
    struct file_request *r = request_find(s, req);
    struct session_point p = {.n = fields_get_u32(f), .up_to = fields_get_u32(f)};
    size_t len;

    p.undone_from = fields_get_u32(f);
    p.undone_to = fields_get_u32(f);
    p.taken_ms = (int64_t)fields_get_u64(f);
    p.memory = fields_get_u64(f);
    const char *lost = fields_get_bytes(f, &len);
    if (!fields_end(f) || (r && r->type != FILE_POINTS) || p.n > p.up_to || p.taken_ms < 0 ||
        !undone_well(&p) || memchr(lost, '\0', len))
        return -1;
    if (!r && s->cell && req == s->course.points_req)
        course_point(s, &p);
    if (!r || r->n_listed++ >= POINTS_MAX)
        return r ? -1 : 0;
    char *text = utf8_repaired(lost, len);
    p.lost = text;
    r->telling = true;
    r->point(r->ctx, &p);
    r->telling = false;
    free(text);
    if (r->forgotten)
        request_free(r);
    return 0;
}

int files_handle(struct session *s, struct msg *m)
{
    struct fields f;

    fields_init(&f, m->data, m->len);
    uint32_t req = fields_get_u32(&f);
    if (f.failed || req == 0)
        return -1;
    switch (m->type) {
    case FILE_DONE:
        return on_done(s, req, &f);
    case FILE_CHANGE:
        return on_change(s, req, &f);
    case FILE_OPENED:
        return on_opened(s, req, &f, m);
    case FILE_USED:
        return on_used(s, req, &f);
    case FILE_RESTORED:
        return on_restored(s, req, &f, m);
    case FILE_EVICTED:
        return on_evicted(s, req, &f);
    case FILE_USAGE_IS:
        return on_usage(s, req, &f);
    case FILE_POINT:
        return on_point(s, req, &f);
    case FILE_ENTRIES:
        return on_entries(s, req, &f);
    default:
        return -1;
    }
}

/* init is gone, or is not init any more. */
static void lose_init(struct session *s)
{
    requests_lost(s);
    if (!s->closed)
        course_init_gone(s);
}

void files_read(struct session *s)
{
    struct err e;

    if (s->sources[FROM_FILES].watched & EPOLLOUT)
        requests_send_ends(s);
    for (unsigned i = 0; i < TURN && !s->closed && s->sources[FROM_FILES].fd >= 0; i++) {
        cleanup_msg struct msg m;
        int got = msg_recv(s->sources[FROM_FILES].fd, &m, &e);
        if (got < 0 && e.code == EAGAIN)
            return;
        if (got < 0 && e.code == EMFILE && m.type == FILE_OPENED) {
            on_opened_in_vain(s, &m);
            continue;
        }
        if (got <= 0 || files_handle(s, &m) < 0) {
            if (!s->closed)
                lose_init(s);
            return;
        }
        /* Most of the time there is one answer, and asking again would be one call in vain. */
        if (!s->cell && !s->requests)
            return;
    }
}
