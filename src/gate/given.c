/* given: files that every new session begins with ("retort mcp --files").
 *
 * They were opened before the gate gave up its rights; here they are read by descriptor, each from its beginning, so
 * that no path of the user's is ever looked up again. One that does not fit, or cannot be read any more, is left out:
 * the log says so, and the session stands without it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/inside.h"

#define PIECE (64u << 10)

struct given {
    struct live *live;
    struct upload upload;
    unsigned i; /* the file under way */
    uint64_t at;
    void (*done)(struct live *l);
};

static void next(struct given *g);

static const struct gate_file *file_of(const struct given *g)
{
    return &g->live->gate->files[g->i];
}

static void left_out(const struct given *g, const char *why)
{
    log_line("file left out number=%u error=\"%s\"", g->i + 1, why);
}

/* Until the pipe is full or the file at its end. What upload_write does not take it asks for again. */
static void pump(void *ctx)
{
    static char piece[PIECE]; /* one thread */
    struct given *g = ctx;

    for (;;) {
        ssize_t n = pread(file_of(g)->fd, piece, sizeof(piece), (off_t)g->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            left_out(g, strerror(errno));
            upload_cancel(&g->upload);
            g->i++;
            next(g);
            return;
        }
        if (n == 0)
            break;
        size_t taken = upload_write(&g->upload, piece, (size_t)n);
        g->at += taken;
        if (taken < (size_t)n)
            return;
        if (g->upload.fd < 0)
            return; /* it was refused: `done` says why */
    }
    upload_finish(&g->upload);
}

static void on_done(void *ctx, const struct err *e)
{
    struct given *g = ctx;

    if (e)
        left_out(g, e->text);
    g->i++;
    next(g);
}

static void next(struct given *g)
{
    struct live *l = g->live;
    void (*done)(struct live *) = g->done;
    struct err e;

    for (; g->i < l->gate->n_files; g->i++) {
        g->at = 0;
        if (upload_start(&g->upload, l, file_of(g)->name, pump, on_done, g, &e) == 0) {
            pump(g);
            return;
        }
        left_out(g, e.text);
    }
    given_stop(l);
    done(l);
}

void given_put(struct live *l, void (*done)(struct live *l))
{
    l->given = xcalloc(1, sizeof(*l->given));
    *l->given = (struct given){.live = l, .done = done};
    next(l->given);
}

void given_stop(struct live *l)
{
    if (!l->given)
        return;
    upload_cancel(&l->given->upload);
    free(l->given);
    l->given = NULL;
}
