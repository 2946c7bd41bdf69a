/* watch: see watch.h. Runs in init.
 *
 * Linux counts inotify instances for each user, and those of a user namespace for its maker too: all
 * boxes together have as many as the one user of the host who started retort (128, mostly), who may
 * have other programs. So not getting one is nothing special, the last ones are left alone, and who does
 * nothing holds none. */
#include "init/watch.h"

#include <errno.h>
#include <poll.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "init/files.h"

#define REST 20          /* what could not be watched will hardly be watchable the next time */
#define LEFT_ALONE 32    /* instances */
#define DIRECTORIES 1024 /* more are not watched */
#define EVENT_READS 80   /* of EVENT_BYTES each: more than the kernel's queue holds */
#define EVENT_BYTES (64 << 10)

#define CAME_OR_WENT (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
#define WRITTEN (IN_MODIFY | IN_ATTRIB)

static void forget_dirs(struct watch *w)
{
    for (unsigned i = 0; i < w->n_dirs; i++)
        free(w->dirs[i].path);
    w->n_dirs = 0;
}

static void forget_touched(struct watch *w)
{
    for (unsigned i = 0; i < w->n; i++)
        free(w->list[i].path);
    w->n = 0;
}

static int by_id(const void *a, const void *b)
{
    const struct watched *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static const struct watched *find(const struct watch *w, int id)
{
    const struct watched key = {.id = id};

    return w->n_dirs ? bsearch(&key, w->dirs, w->n_dirs, sizeof(key), by_id) : NULL;
}

/* ---- the walk ---- */

/* What has been told until now is of no use. Not for ever: somebody may fill it as fast as we read. */
static void drain(struct watch *w)
{
    static char events[EVENT_BYTES];

    for (int i = 0; i < EVENT_READS; i++)
        if (read(w->fd, events, sizeof(events)) <= 0)
            return;
}

static void stop(struct watch *w)
{
    if (w->started)
        close(w->fd);
    w->started = false;
    forget_dirs(w);
}

void watch_rest(struct watch *w)
{
    stop(w);
    w->sound = false;
}

/* An instance, or -1 where there would be few left for others. */
static int new_instance(void)
{
    int more[LEFT_ALONE], n = 0;
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    while (fd >= 0 && n < LEFT_ALONE && (more[n] = inotify_init1(IN_CLOEXEC)) >= 0)
        n++;
    if (n < LEFT_ALONE)
        fd_close(&fd);
    while (n > 0)
        close(more[--n]);
    return fd;
}

bool watch_begin(struct watch *w)
{
    w->sound = false;
    w->failed = false;
    if (w->rest > 0) {
        w->rest--;
        return false;
    }
    if (!w->started) {
        w->fd = new_instance();
        w->started = w->fd >= 0;
        w->rest = w->started ? 0 : REST;
    }
    if (!w->started)
        return false;
    drain(w);
    forget_dirs(w);
    return true;
}

void watch_enter(void *watch, int dir, const char *path)
{
    struct watch *w = watch;
    char self[64];

    if (w->failed)
        return;
    /* By descriptor: what is watched is what is read next, whatever has the name by then. */
    snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
    int id =
        w->n_dirs < DIRECTORIES
            ? inotify_add_watch(w->fd, self, CAME_OR_WENT | WRITTEN | IN_CLOSE_WRITE | IN_ONLYDIR)
            : -1;
    if (id < 0) {
        w->failed = true;
        return;
    }
    if (w->n_dirs == w->cap_dirs) {
        w->cap_dirs = w->cap_dirs ? w->cap_dirs * 2 : 16;
        w->dirs = realloc(w->dirs, w->cap_dirs * sizeof(*w->dirs));
        if (!w->dirs)
            bug("out of memory");
    }
    w->dirs[w->n_dirs++] = (struct watched){id, xstrdup(path)};
}

void watch_end(struct watch *w, bool complete)
{
    if (w->n_dirs > 1)
        qsort(w->dirs, w->n_dirs, sizeof(*w->dirs), by_id);
    /* One directory at two places: it was moved while we walked. */
    for (unsigned i = 1; i < w->n_dirs; i++)
        w->failed |= w->dirs[i].id == w->dirs[i - 1].id;
    w->sound = complete && !w->failed;
    if (w->sound)
        return;
    stop(w);
    w->rest = REST;
}

/* ---- what happened since ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct touched *)a)->path, ((const struct touched *)b)->path);
}

static void unite(struct watch *w)
{
    unsigned kept = 0;

    if (w->n > 1)
        qsort(w->list, w->n, sizeof(*w->list), by_path);
    for (unsigned i = 0; i < w->n; i++) {
        struct touched *last = kept ? &w->list[kept - 1] : NULL;
        if (last && strcmp(last->path, w->list[i].path) == 0) {
            last->named |= w->list[i].named;
            last->written |= w->list[i].written;
            free(w->list[i].path);
        } else {
            w->list[kept++] = w->list[i];
        }
    }
    w->n = kept;
}

static bool note(struct watch *w, const struct watched *dir, const struct inotify_event *ev)
{
    struct touched *last = w->n ? &w->list[w->n - 1] : NULL;
    size_t in = strlen(dir->path), len = strlen(ev->name);

    if (in + len >= FILES_PATH)
        return false;
    /* Writing a file in small pieces is many events of one name. */
    if (!last || strncmp(last->path, dir->path, in) != 0 ||
        strcmp(last->path + in, ev->name) != 0) {
        if (w->n == WATCH_NAMES)
            unite(w);
        if (w->n == WATCH_NAMES)
            return false;
        if (!w->list)
            w->list = xcalloc(WATCH_NAMES, sizeof(*w->list));
        last = &w->list[w->n++];
        *last = (struct touched){.path = xasprintf("%s%s", dir->path, ev->name)};
    }
    last->named |= (ev->mask & CAME_OR_WENT) != 0;
    last->written |= (ev->mask & WRITTEN) != 0;
    return true;
}

/* False: there is a doubt. */
static bool hear(struct watch *w, const struct inotify_event *ev)
{
    const struct watched *dir = find(w, ev->wd);

    if (ev->mask & IN_IGNORED)
        return !dir; /* else one that we walked is gone */
    if (!dir || ev->mask & (IN_Q_OVERFLOW | IN_UNMOUNT | IN_ISDIR) || ev->len == 0)
        return false;
    return note(w, dir, ev);
}

bool watch_quiet(const struct watch *w)
{
    struct pollfd events = {.fd = w->fd, .events = POLLIN};

    return w->started && w->sound && poll(&events, 1, 0) == 0;
}

bool watch_read(struct watch *w)
{
    static _Alignas(struct inotify_event) char events[EVENT_BYTES];

    forget_touched(w);
    if (!w->sound)
        return false;
    for (int i = 0; i < EVENT_READS; i++) {
        ssize_t n = read(w->fd, events, sizeof(events));
        if (n < 0 && errno == EAGAIN) {
            unite(w);
            return true;
        }
        if (n <= 0)
            break;
        for (char *at = events; at < events + n;) {
            const struct inotify_event *ev = (const struct inotify_event *)(void *)at;
            if (!hear(w, ev))
                return w->sound = false;
            at += sizeof(*ev) + ev->len;
        }
    }
    return w->sound = false;
}
