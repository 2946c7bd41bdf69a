/* branch: see branch.h. All of this runs in memory that a guest may have written to, and so has no secret and no
 * right that a guest may not have: over the namespaces that come with the message, which hold nothing but
 * the branch itself. It has them by being of the uid that made them, and gives them up before any Python runs. */
#include "zygote/branch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"
#include "box/identity.h"
#include "box/steps.h"
#include "wire/fields.h"
#include "wire/proto.h"
#include "zygote/keep.h"
#include "zygote/shared.h"

/* As the filter wants it: see BOX_BRANCH_WORD. */
static int enter(int fd, int kind)
{
    return (int)syscall(SYS_setns, fd, kind, BOX_BRANCH_WORD);
}

/* ---- forking ---- */

/* The go-between goes into the box for its children: the first of them is in its pid namespace, and when it
 * leaves, the second is the child of init there. */
static __attribute__((noinline)) int fork_inside(int user, int pid)
{
    long between = fork_raw();

    if (between == 0) {
        if (enter(user, CLONE_NEWUSER) < 0 || enter(pid, CLONE_NEWPID) < 0)
            _exit(1);
        pid_t made = fork_apart();
        if (made == 0)
            return 0;
        _exit(0);
    }
    if (between > 0)
        fork_reap(between);
    return -1;
}

int branch_fork(const struct msg *m)
{
    if (m->n_fds < BRANCH_FD_WAYS)
        return -1;
    return fork_inside(m->fds[BRANCH_FD_USER], m->fds[BRANCH_FD_PID]);
}

/* ---- open files ---- */

/* A descriptor of something that has a name: in the new box, the same name is another file. */
struct held {
    int fd, flags;
    bool inherited;
    mode_t type;
    off_t at;
    char *path; /* NULL: it has no name any more */
};

struct held_files {
    struct held *list;
    unsigned n;
    char here[PATH_MAX];
};

static bool has_come(const struct msg *m, int fd)
{
    for (unsigned i = 0; i < m->n_fds; i++)
        if (m->fds[i] == fd)
            return true;
    return false;
}

static char *name_of(int fd)
{
    static const char gone[] = " (deleted)";
    char link[64], path[PATH_MAX];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0 || path[0] != '/')
        return NULL;
    path[n] = '\0';
    size_t end = strlen(gone);
    if ((size_t)n > end && strcmp(path + n - end, gone) == 0)
        return NULL;
    return xstrdup(path);
}

static void note_held(struct held_files *h, int fd)
{
    struct stat st = {0};
    int flags = fcntl(fd, F_GETFL);

    /* Of whatever type: what can only be used to open other files by it leads to the other session's as well. */
    if (flags < 0)
        return;
    fstat(fd, &st);
    h->list = realloc(h->list, (h->n + 1) * sizeof(*h->list));
    if (!h->list)
        _exit(1);
    h->list[h->n++] = (struct held){.fd = fd,
                                    .flags = flags,
                                    .inherited = !(fcntl(fd, F_GETFD) & FD_CLOEXEC),
                                    .type = st.st_mode & S_IFMT,
                                    .at = lseek(fd, 0, SEEK_CUR),
                                    .path = name_of(fd)};
}

/* While the names can be seen: in the old root. Where the channel will be there are stoppers. */
static void note_all(struct held_files *h, const struct msg *m, bool any)
{
    DIR *d = any ? opendir("/proc/self/fd") : NULL;

    *h = (struct held_files){.here = BOX_WORKSPACE};
    if (!getcwd(h->here, sizeof(h->here)) || h->here[0] != '/')
        strcpy(h->here, BOX_WORKSPACE);
    if (any && !d)
        _exit(1);
    if (!has_come(m, STDIN_FILENO)) /* the guest has closed it */
        note_held(h, STDIN_FILENO);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        int fd = atoi(entry->d_name);
        if (fd > BOX_INIT_FD && fd != dirfd(d) && !has_come(m, fd))
            note_held(h, fd);
    }
    if (d)
        closedir(d);
}

static bool open_in_branch(const struct held *x)
{
    const int kept = O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECT | O_PATH;
    int more = (S_ISDIR(x->type) ? O_DIRECTORY : 0) | (x->flags & O_PATH ? O_NOFOLLOW : 0);
    struct stat st;

    if (!x->path)
        return false;
    cleanup_fd int own = open(x->path, (x->flags & kept) | more | O_CLOEXEC | O_NOCTTY);
    if (own < 0 || fstat(own, &st) < 0 || (st.st_mode & S_IFMT) != x->type)
        return false;
    if (x->at > 0 && S_ISREG(x->type))
        lseek(own, x->at, SEEK_SET);
    return dup3(own, x->fd, x->inherited ? 0 : O_CLOEXEC) >= 0;
}

/* None before all are given up: a name may be a link of the guest's that leads through another of them. */
static void open_all(struct held_files *h, struct buf *lost)
{
    for (unsigned i = 0; i < h->n; i++)
        keep_put_stoppers(h->list[i].fd, h->list[i].fd);
    for (unsigned i = 0; i < h->n; i++) {
        struct held *x = &h->list[i];
        if (!open_in_branch(x))
            keep_note_lost(lost, "file", x->fd);
        free(x->path);
    }
    free(h->list);
    if (chdir(h->here) < 0 && chdir(BOX_WORKSPACE) < 0)
        _exit(1);
}

/* ---- going in ---- */

_Noreturn static void fail(const struct msg *m, const char *step, struct err *why)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, SETUP_FAILED);
    fields_put_text(&b, step);
    fields_put_text(&b, why->text);
    msg_send(m->fds[BRANCH_FD_SETUP], &b, NULL, 0, &ignored);
    _exit(1);
}

struct joining {
    const struct msg *m;
    bool may_share;
    struct shared_list shared;
    struct msg go; /* the keeper's word */
};

static int join_attach(void *ctx, struct err *e)
{
    const struct msg *m = ((struct joining *)ctx)->m;

    for (unsigned i = BRANCH_FD_WAYS; i < m->n_fds; i++)
        if (write(m->fds[i], "0", 1) != 1)
            return err_set(e, errno, "cannot enter the cgroup");
    return 0;
}

static int join_namespaces(void *ctx, struct err *e)
{
    struct joining *x = ctx;
    const int *fds = x->m->fds;

    if (enter(fds[BRANCH_FD_MNT], CLONE_NEWNS) < 0 || enter(fds[BRANCH_FD_IPC], CLONE_NEWIPC) < 0 ||
        enter(fds[BRANCH_FD_UTS], CLONE_NEWUTS) < 0 || enter(x->go.fds[0], CLONE_NEWNET) < 0 ||
        enter(x->go.fds[1], CLONE_NEWCGROUP) < 0)
        return err_set(e, errno, "setns");
    msg_done(&x->go);
    return 0;
}

static int join_bare(void *ctx, struct err *e)
{
    (void)ctx;
    if (identity_drop(e) < 0)
        return -1;
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_set(e, errno, "cannot become dumpable");
    return setsid() < 0 ? err_set(e, errno, "setsid") : 0;
}

/* Who we are, to init, and that we want our first state to wait; and when the root stands and we count as the branch's,
 * the keeper's word. */
static int join_tell(void *ctx, struct err *e)
{
    struct joining *x = ctx;
    cleanup_buf struct buf b = {0};
    struct fields f;

    msg_begin(&b, LINE_HERE);
    if (msg_send(x->m->fds[BRANCH_FD_LINE], &b, NULL, 0, e) < 0)
        return -1;
    fields_init(&f, x->m->data, x->m->len);
    if (!keep_want(x->m->fds[BRANCH_FD_LINE], fields_get_u32(&f))) /* it makes way meanwhile */
        return err_set(e, EPIPE, "init does not listen");
    x->shared = (struct shared_list){0};
    if (x->may_share && shared_note(&x->shared) < 0) /* meanwhile, and still in the old root */
        return err_set(e, errno, "cannot read what is mapped");
    if (msg_recv(x->m->fds[BRANCH_FD_SETUP], &x->go, e) <= 0 || x->go.type != SETUP_GO ||
        x->go.n_fds != 2)
        _exit(1);
    return 0;
}

void branch_join(const struct msg *m, struct belongings may, struct buf *lost)
{
    static const struct step steps[] = {
        {"branch-attach", join_attach},
        {"branch-tell", join_tell},
        {"branch-namespaces", join_namespaces},
        {"branch-bare", join_bare},
    };
    static struct joining x;
    struct held_files held;
    const char *failed;
    struct err e = {0};

    x.m = m;
    x.may_share = may.shared;
    note_all(&held, m, may.files);
    if (STEPS_RUN(steps, &x, &failed, &e) < 0)
        fail(m, failed, &e);
    open_all(&held, lost);
    shared_split(&x.shared);
    shared_done(&x.shared);
}

void branch_ready(const struct msg *m)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    msg_begin(&b, SETUP_DONE);
    if (msg_send(m->fds[BRANCH_FD_SETUP], &b, NULL, 0, &e) < 0)
        _exit(1);
}
