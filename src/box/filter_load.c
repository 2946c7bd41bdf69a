/* filter_load: the half of filter.h that also runs inside boxes. Apart from the compiler, so that the
 * zygote's extension does not need libseccomp. */
#include "box/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>

void filter_done(struct filter *f)
{
    for (unsigned i = 0; i < FILTER_PROGRAMS; i++)
        free(f->programs[i].filter);
    *f = (struct filter){0};
}

/* Through prctl: the first program denies seccomp(2), and only the last one this very call. */
static int load(const struct filter *f, unsigned i, struct err *e)
{
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f->programs[i]) < 0)
        return err_set(e, errno, "cannot load filter %u of %u instructions", i, f->programs[i].len);
    return 0;
}

int filter_load_first(const struct filter *f, struct err *e)
{
    for (unsigned i = 0; i < FILTER_LAST; i++)
        if (load(f, i, e) < 0)
            return -1;
    return 0;
}

int filter_load_last(const struct filter *f, struct err *e)
{
    return load(f, FILTER_LAST, e);
}

int filter_load_guest(const struct filter *f, struct err *e)
{
    return load(f, FILTER_GUEST, e);
}
