/* filter_load: the half of filter.h that runs inside boxes. Apart from the compiler, so that the
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

int filter_load(const struct filter *f, struct err *e)
{
    /* The argument program goes last, and through prctl: the first one already denies seccomp(2),
     * and the last one denies this very call to everybody after us. */
    for (unsigned i = 0; i < FILTER_PROGRAMS; i++)
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f->programs[i]) < 0)
            return err_set(e, errno, "cannot load filter %u of %u instructions", i,
                           f->programs[i].len);
    return 0;
}
