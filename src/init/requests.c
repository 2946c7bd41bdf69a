/* requests: what the session's owner asks of init, as messages: files, what a cell did to them, what the box has
 * used, states that are kept. A request has its answers, and is over with the last of them. */
#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/files.h"
#include "init/inside.h"
#include "init/snapshot.h"
#include "wire/fields.h"
#include "wire/msg.h"
#include "wire/proto.h"

#define DYING_MS 500
#define LIST_BYTES (MSG_SIZE / 2) /* in one message of a list; one more path fits in any case */

static void answer(struct init *in, const struct buf *b, int fd)
{
    struct err e;

    /* Waits while the owner does not read: that holds up this box and no other. */
    if (msg_send(in->files, b, &fd, fd >= 0, &e) < 0)
        in->files = -1; /* it let go; the keeper will end us */
}

static void answer_done(struct init *in, uint32_t req, int error, const char *reason)
{
    cleanup_buf struct buf b = {0};

    msg_begin(&b, FILE_DONE);
    fields_put_u32(&b, req);
    fields_put_u32(&b, (uint32_t)error);
    fields_put_text(&b, reason);
    answer(in, &b, -1);
}

/* ---- files ---- */

/* The path, with which the request ends. false: there is none, and that has been answered. */
static bool get_path(struct init *in, struct fields *f, uint32_t req, char ret[FILES_PATH])
{
    fields_get_text(f, ret, FILES_PATH);
    if (!fields_end(f))
        answer_done(in, req, EINVAL, "the path is too long or not a path");
    return fields_end(f);
}

static void on_put(struct init *in, struct fields *f, struct msg *m)
{
    char path[FILES_PATH];
    struct err e;

    uint32_t req = fields_get_u32(f);
    cleanup_fd int pipe = msg_take_fd(m, 0);
    if (!get_path(in, f, req, path))
        return;
    if (pipe < 0)
        answer_done(in, req, EINVAL, "there is no pipe with it");
    else if (transfers_begin(&in->transfers, req, path, &pipe, &e) < 0)
        answer_done(in, req, e.code, e.text);
}

static void on_put_end(struct init *in, struct fields *f, struct msg *m)
{
    (void)m;
    uint32_t req = fields_get_u32(f);
    uint64_t size = fields_get_u64(f);
    if (fields_end(f))
        transfers_end(&in->transfers, req, size);
}

void requests_transfer_over(void *ctx, uint32_t req, const char *path, const struct err *why)
{
    struct init *in = ctx;

    if (why) {
        answer_done(in, req, why->code ? why->code : EIO, why->text);
        return;
    }
    changes_accept(&in->changes, path); /* an upload is not a change that a cell made */
    in->points.touched = true;
    answer_done(in, req, 0, "");
}

static void on_get(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    char path[FILES_PATH];
    struct err e;
    (void)m;

    uint32_t req = fields_get_u32(f);
    if (!get_path(in, f, req, path))
        return;
    cleanup_fd int fd = files_open(path, &e);
    if (fd < 0) {
        answer_done(in, req, e.code, e.text);
        return;
    }
    msg_begin(&b, FILE_OPENED);
    fields_put_u32(&b, req);
    answer(in, &b, fd);
}

struct change_ctx {
    struct init *in;
    uint32_t req;
};

static void tell_change(void *ctx, const struct change *c)
{
    struct change_ctx *x = ctx;
    cleanup_buf struct buf b = {0};

    x->in->points.touched = true;
    msg_begin(&b, FILE_CHANGE);
    fields_put_u32(&b, x->req);
    fields_put_u8(&b, (uint8_t)c->kind);
    fields_put_u64(&b, c->size);
    fields_put_bytes(&b, c->sha256, c->has_sha256 ? sizeof(c->sha256) : 0);
    fields_put_text(&b, c->path);
    answer(x->in, &b, -1);
}

static void on_changes(struct init *in, struct fields *f, struct msg *m)
{
    (void)m;
    struct change_ctx x = {in, fields_get_u32(f)};
    struct err e = {0};

    if (changes_report(&in->changes, tell_change, &x, &e) < 0)
        answer_done(in, x.req, e.code ? e.code : EIO, e.text);
    else
        answer_done(in, x.req, 0, "");
}

static void on_space(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    uint64_t bytes, inodes;
    (void)m;

    uint32_t req = fields_get_u32(f);
    files_space(&bytes, &inodes);
    msg_begin(&b, FILE_USED);
    fields_put_u32(&b, req);
    fields_put_u64(&b, bytes);
    fields_put_u64(&b, inodes);
    answer(in, &b, -1);
}

static void on_usage(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    (void)m;

    uint32_t req = fields_get_u32(f);
    usage_sample(&in->usage, in->plan->pids, &in->points);
    msg_begin(&b, FILE_USAGE_IS);
    fields_put_u32(&b, req);
    fields_put_u64(&b, in->usage.cpu_us);
    fields_put_u64(&b, in->usage.peak);
    fields_put_u64(&b, in->usage.crowded);
    answer(in, &b, -1);
}

static void on_list(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    struct snapshot now;
    struct err e;
    (void)m;

    uint32_t req = fields_get_u32(f);
    if (snapshot_take(&now, NULL, NULL, &e) < 0) {
        answer_done(in, req, e.code, e.text);
        return;
    }
    for (unsigned i = 0; i < now.n; i++) {
        const struct entry *x = &now.list[i];
        if (b.len == 0) {
            msg_begin(&b, FILE_ENTRIES);
            fields_put_u32(&b, req);
        }
        fields_put_u64(&b, x->size);
        fields_put_u64(&b, x->mtime_ns);
        fields_put_text(&b, x->path);
        if (b.len < LIST_BYTES && i + 1 < now.n)
            continue;
        answer(in, &b, -1);
        b.len = 0;
    }
    bool cut = now.cut;
    snapshot_done(&now);
    if (cut)
        answer_done(in, req, E2BIG, "the workspace has more files than retort lists");
    else
        answer_done(in, req, 0, "");
}

static void on_delete(struct init *in, struct fields *f, struct msg *m)
{
    char path[FILES_PATH];
    struct err e;
    (void)m;

    uint32_t req = fields_get_u32(f);
    if (!get_path(in, f, req, path))
        return;
    int result = files_delete(path, &e);
    changes_forget(&in->changes, path); /* what is gone now was not a cell's doing */
    in->points.touched = true;
    if (result < 0)
        answer_done(in, req, e.code ? e.code : EIO, e.text);
    else
        answer_done(in, req, 0, "");
}

/* ---- states that are kept ---- */

/* The interpreter is dead, and (where there is a cgroup) all that it had started. */
static void on_restore(struct init *in, struct fields *f, struct msg *m)
{
    struct err e;
    (void)m;

    in->restore_req = fields_get_u32(f);
    in->told_short = false;
    uint32_t n = fields_get_u32(f);
    if (!fields_end(f))
        return;
    if (!in->plan->has_cgroup)
        init_end_guests(in);
    int found = points_find(&in->points, n);
    in->missing.len = 0;
    if (n != POINT_NEWEST && found >= 0) {
        /* What cannot be brought back is told; the rest is worth having. */
        if (past_restore(&in->points.list[found].past, &in->missing, &e) < 0)
            buf_add_text(&in->missing, "the workspace");
        in->points.touched = true;
        changes_accept_all(&in->changes);
    }
    if (points_wake(&in->points, n, &e) < 0)
        answer_done(in, in->restore_req, e.code ? e.code : EIO, e.text);
}

static void on_points(struct init *in, struct fields *f, struct msg *m)
{
    uint32_t req = fields_get_u32(f);
    bool weigh = m->type == FILE_POINTS;

    for (unsigned i = 0; i < in->points.n; i++) {
        const struct point *x = &in->points.list[i];
        cleanup_buf struct buf b = {0}, lost = {0};
        uint64_t shared = 0, weight = weigh ? points_weigh(x, &shared) : 0;
        buf_add_text(&lost, x->lost);
        if (shared)
            buf_add_fmt(&lost, "%s" POINT_SHARED, lost.len ? "\n" : "", (size_t)(shared >> 10));
        msg_begin(&b, FILE_POINT);
        fields_put_u32(&b, req);
        fields_put_u32(&b, x->n);
        fields_put_u32(&b, x->up_to);
        fields_put_u32(&b, x->undone_from);
        fields_put_u32(&b, x->undone_to);
        fields_put_u64(&b, (uint64_t)x->taken_ms);
        fields_put_u64(&b, weight);
        fields_put_text(&b, buf_text(&lost));
        answer(in, &b, -1);
    }
    answer_done(in, req, 0, "");
}

static void on_keep(struct init *in, struct fields *f, struct msg *m)
{
    fields_get_u32(f);
    uint32_t n = fields_get_u32(f);
    uint64_t memory = fields_get_u64(f);
    (void)m;
    if (!fields_end(f))
        return;
    points_limit(&in->points, n);
    points_memory(&in->points, memory);
}

static void on_same(struct init *in, struct fields *f, struct msg *m)
{
    fields_get_u32(f);
    uint32_t of = fields_get_u32(f), from = fields_get_u32(f), to = fields_get_u32(f);
    (void)m;
    if (fields_end(f) && of != POINT_NEWEST)
        points_same(&in->points, of, from, to);
}

static void on_evictions(struct init *in, struct fields *f, struct msg *m)
{
    cleanup_buf struct buf b = {0};
    uint32_t req = fields_get_u32(f);
    (void)m;

    for (int ms = 0; ms < DYING_MS && points_dying(&in->points); ms++) {
        usleep(1000);
        init_reap(in);
    }
    msg_begin(&b, FILE_EVICTED);
    fields_put_u32(&b, req);
    fields_put_u32(&b, in->points.evicted);
    answer(in, &b, -1);
}

void requests_tell_restored(struct init *in)
{
    cleanup_buf struct buf b = {0};
    int fds[4];
    uint32_t n;
    struct err e;

    int woke = points_woke(&in->points, &n, fds, &e);
    if (woke < 0)
        answer_done(in, in->restore_req, e.code ? e.code : EIO, e.text);
    if (woke <= 0)
        return;
    msg_begin(&b, FILE_RESTORED);
    fields_put_u32(&b, in->restore_req);
    fields_put_u32(&b, n);
    fields_put_bytes(&b, in->missing.data, in->missing.len);
    if (msg_send(in->files, &b, fds, 4, &e) < 0)
        in->files = -1;
    for (unsigned i = 0; i < 4; i++)
        fd_close(&fds[i]);
}

/* ---- which is which ---- */

static void on_message(struct init *in, struct msg *m)
{
    static void (*const handlers[])(struct init *, struct fields *, struct msg *) = {
        /* clang-format off */
        [FILE_PUT] = on_put,
        [FILE_PUT_END] = on_put_end,
        [FILE_GET] = on_get,
        [FILE_CHANGES] = on_changes,
        [FILE_SPACE] = on_space,
        [FILE_USAGE] = on_usage,
        [FILE_LIST] = on_list,
        [FILE_DELETE] = on_delete,
        [FILE_RESTORE] = on_restore,
        [FILE_STATES] = on_points,
        [FILE_POINTS] = on_points,
        [FILE_KEEP] = on_keep,
        [FILE_SAME] = on_same,
        [FILE_EVICTIONS] = on_evictions,
        /* clang-format on */
    };
    struct fields f;

    fields_init(&f, m->data, m->len);
    if (m->type < sizeof(handlers) / sizeof(*handlers) && handlers[m->type])
        handlers[m->type](in, &f, m);
}

void requests_serve(struct init *in)
{
    static struct msg m;
    struct err e;
    int r = msg_recv(in->files, &m, &e);

    if (r == 0 || (r < 0 && e.code != EBADMSG))
        in->files = -1; /* the owner let go */
    if (r > 0)
        on_message(in, &m);
    msg_done(&m);
}
