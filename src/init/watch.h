/* watch: which names of the workspace had something happen to them, by inotify.
 *
 * It only saves work. A round of watching begins with a walk over everything, and what happened since
 * can be believed only while every directory of the workspace is the one that was walked: wherever
 * there is a doubt (a directory came, went, moved or was shut, events were lost, something was written
 * under a name that is not there), the answer is that everything must be walked anew. A guest that
 * plays tricks makes its own cells slow.
 *
 *     watch_begin ─▶ walk, watch_enter for each directory ─▶ watch_end ─▶ watch_read … until false ─┐
 *          ▲                                                                                        │
 *          └────────────────────────────────────────────────────────────────────────────────────────┘
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCH_NAMES 1024 /* with more, walking is as fast */

/* A path whose name had events. */
struct touched {
    char *path;
    bool named;   /* it came, went or was renamed */
    bool written; /* its contents or attributes were changed */
};

struct watched {
    int id;
    char *path; /* "", or ends in a slash */
};

struct watch {
    bool started; /* `fd` is an inotify instance */
    int fd;
    bool sound;           /* what is read can be believed */
    bool failed;          /* in this walk */
    unsigned rest;        /* so many walks to come do without */
    struct watched *dirs; /* sorted by id, after watch_end */
    unsigned n_dirs, cap_dirs;
    struct touched *list; /* of the last watch_read; sorted by path, each path once */
    unsigned n;
};

/* The walk begins. False: do without watching, this time. */
bool watch_begin(struct watch *w);
/* Watch this directory, before it is read. As snapshot_enter. */
void watch_enter(void *watch, int dir, const char *path);
/* The walk is over. It saw everything, or nothing of it counts. */
void watch_end(struct watch *w, bool complete);

/* Give back what it holds of the host, until the next walk. */
void watch_rest(struct watch *w);

/* True: nothing has happened since the last watch_read that there is to read. */
bool watch_quiet(const struct watch *w);

/* True: w->list is what was touched. False: walk. */
bool watch_read(struct watch *w);
