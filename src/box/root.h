/* root: what a box sees of the file system.
 *
 * The keeper lives in a bare mount namespace of its own, in which lie, for each environment, a
 * skeleton (directories, symbolic links, a few files of /etc, retort's own runner) and the read-only
 * directories that it needs. A box puts an overlay of its own over each of them, in which files of the
 * skeleton may take the place of the host's. Without the overlay two boxes would share inodes, and file
 * locks, leases and inotify on them would carry messages from one session to another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define ROOT_LOWERS 24
#define ROOT_ENVIRONMENTS 16

/* What pip may install, in every box of an environment that has it; beside the runner, which looks for it there. */
#define ROOT_WHEELS "/opt/retort/wheels"

/* The keeper's own mount namespace, as init inherits it. */
struct root_view {
    unsigned n_environments;
    struct {
        char *lowers[ROOT_LOWERS]; /* "/usr", …: absolute, the same inside and outside */
        unsigned n_lowers;
    } environments[ROOT_ENVIRONMENTS];
    bool device_sets; /* device nodes for each slot, else the host's own are shown */
};

/* What the keeper needs from the host for it. */
struct root_source {
    const char *runner; /* directory with boot.py and the rest, for messages */
    int runner_fd;      /* and opened: we may not be allowed to go there any more */
    int device_sets_fd; /* a detached mount with a directory for each slot, or -1 */
};

/* In the keeper's fresh mount namespace: build the view and leave everything else behind. */
int root_begin(const struct root_source *s, struct root_view *ret, struct err *e);
/* `fds` are the opened `paths`: the keeper's own uid may not be able to walk there; or -errno. So is *wheels, for
 * ROOT_WHEELS, or it is NULL. */
int root_add_environment(struct root_view *v, const struct root_source *s, char *const *paths,
                         const int *fds, const int *wheels, struct err *e);
int root_finish(struct root_view *v, const struct root_source *s, struct err *e);

/* In a process with a mount namespace of its own below the keeper's: put environment i together. */
int root_mount_system(const struct root_view *v, unsigned environment, struct err *e);
/* The rest of it, when the box's own file systems are there that would cover it. */
int root_mount_covered(const struct root_view *v, unsigned environment, struct err *e);
/* In a branch, whose scratch file systems will cover what the box that it comes from shows there: put it aside,
 * and show it again. */
int root_save_covered(const struct root_view *v, unsigned environment, struct err *e);
int root_show_saved(const struct root_view *v, unsigned environment, struct err *e);
int root_mount_devices(const struct root_view *v, unsigned slot, struct err *e);
/* Change to it and let go of the keeper's view. */
int root_pivot(struct err *e);

/* Where it is being put together, for the mounts that a box adds. */
#define ROOT_BOX "/box"
