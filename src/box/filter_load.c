/* filter_load: the half of filter.h that also runs inside boxes. Apart from the compiler, so that the
 * zygote's extension does not need libseccomp. */
#include "box/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

void filter_done(struct filter *f)
{
    for (unsigned i = 0; i < FILTER_PROGRAMS; i++)
        free(f->programs[i].filter);
    *f = (struct filter){0};
}

/* Only init may watch files: Linux counts the instances of a namespace against its maker too, who has 128
 * for everything he runs, and for all of his boxes. "You have too many" is what programs know to live with. */
static struct sock_filter no_watching[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_inotify_init
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_inotify_init, 1, 0),
#endif
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_inotify_init1, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

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
    /* What this program does not look at (another architecture's numbers) the others do. */
    const struct sock_fprog program = {sizeof(no_watching) / sizeof(*no_watching), no_watching};

    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return err_set(e, errno, "cannot load the guest's filter");
    return filter_load_last(f, e);
}
