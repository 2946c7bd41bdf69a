/* workspace: see workspace.h.
 *
 * A workspace is a tmpfs of the box's own with a bound on its inodes, which the kernel counts exactly: one is its root,
 * and one more for each name in it, and for each file that is open without a name. The descriptor is of a box, so it may
 * be anything: all that is ever asked of it is this count.
 */
#include "session/workspace.h"

#include <sys/vfs.h>

#include "base/fd.h"

#define ROOT_ALONE 1

static bool is_empty(const struct workspace *w)
{
    struct statfs st;

    /* Without a bound nothing is counted. */
    return w->fd >= 0 && fstatfs(w->fd, &st) == 0 && st.f_files > 0 &&
           st.f_files - st.f_ffree == ROOT_ALONE;
}

void workspace_init(struct workspace *w, int fd, bool has_files)
{
    *w = (struct workspace){.fd = fd};
    w->empty_before = !has_files && is_empty(w);
}

void workspace_done(struct workspace *w)
{
    fd_close(&w->fd);
}

bool workspace_still_empty(const struct workspace *w)
{
    return w->empty_before && is_empty(w);
}

void workspace_asked(struct workspace *w)
{
    w->empty_asked = is_empty(w);
    w->empty_before = false;
}

/* One that came while init looked is known to it, and its end would have to be told. */
void workspace_told(struct workspace *w, bool files)
{
    w->empty_before = w->empty_asked && !files && is_empty(w);
}

void workspace_fills(struct workspace *w)
{
    w->empty_before = w->empty_asked = false;
}
