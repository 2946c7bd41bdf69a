/* zygotes: starting them, and asking them for forks. Runs in the keeper. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "box/identity.h"
#include "box/steps.h"
#include "keeper/state.h"
#include "wire/proto.h"
#include "zygote/zygote.h"

/* Long, for machines that are short of everything; a zygote that is stuck is so for ever. */
#define WARM_MS (300 * 1000)
#define PATIENCE_MS (30 * 1000)
#define STILLBORN_MAX 3 /* zygotes killed in a row before they were warm */

static int write_program(int fd, const struct sock_fprog *p)
{
    uint32_t len = p->len;

    return fd_write_all(fd, &len, sizeof(len)) < 0
               ? -1
               : fd_write_all(fd, p->filter, len * sizeof(*p->filter));
}

/* The programs that the zygote has not on yet as a file, with their lengths before them. */
static int filter_file(const struct filter *f, struct err *e)
{
    cleanup_fd int fd = memfd_create("filter", MFD_CLOEXEC);
    if (fd < 0)
        return err_set(e, errno, "memfd_create");
    if (write_program(fd, &f->programs[FILTER_GUEST]) < 0 ||
        write_program(fd, &f->programs[FILTER_LAST]) < 0)
        return err_set(e, errno, "cannot pass the filter on");
    lseek(fd, 0, SEEK_SET);
    return fd_steal(&fd);
}

/* The zygote sees what its boxes will see, so that paths and imported files agree. */
static int enter_root(struct state *s, unsigned environment, struct err *e)
{
    static const char *const scratch[] = {ROOT_BOX "/tmp", ROOT_BOX BOX_HOME, ROOT_BOX "/dev/shm",
                                          ROOT_BOX BOX_WORKSPACE};

    if (unshare(CLONE_NEWNS) < 0)
        return err_set(e, errno, "unshare");
    if (root_mount_system(&s->view, environment, e) < 0 ||
        root_mount_devices(&s->view, SLOT_ZYGOTE, e) < 0)
        return -1;
    if (mount("/proc", ROOT_BOX "/proc", NULL, MS_BIND | MS_REC, NULL) < 0)
        return err_set(e, errno, "cannot show /proc");
    for (size_t i = 0; i < sizeof(scratch) / sizeof(*scratch); i++)
        if (mount("tmpfs", scratch[i], "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
            return err_set(e, errno, "cannot mount a tmpfs");
    if (root_mount_covered(&s->view, environment, e) < 0)
        return -1;
    return root_pivot(e);
}

_Noreturn static void become_zygote(struct state *s, unsigned environment, int control, int log)
{
    const struct environment *env = &s->options->environments[environment];
    uint64_t memory = s->options->limits.memory;
    char preload[4096], fault[128], limit[64];
    const char *injected = getenv("RETORT_FAULT");
    struct err e = {0};

    snprintf(preload, sizeof(preload), "RETORT_PRELOAD=%s", env->preload);
    snprintf(fault, sizeof(fault), "RETORT_FAULT=%s", injected ? injected : "");
    /* Of most boxes: the others change it. */
    snprintf(limit, sizeof(limit), "RETORT_MEMORY=%" PRIu64, memory == LIMIT_NONE ? 0 : memory);
    char *const argv[] = {env->python, "/opt/retort/boot.py", NULL};
    /* Nothing of the host's environment: it may hold secrets, and every box would inherit them.
     * One thread for numerical libraries until a box knows how many it may have. */
    char *const envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                          "HOME=" BOX_HOME,
                          "USER=user",
                          "LOGNAME=user",
                          "LANG=C.UTF-8",
                          "LC_ALL=C.UTF-8",
                          "TZ=UTC",
                          "TERM=dumb",
                          "MPLBACKEND=Agg",
                          "OMP_NUM_THREADS=1",
                          "OPENBLAS_NUM_THREADS=1",
                          "MKL_NUM_THREADS=1",
                          "PYTHONDONTWRITEBYTECODE=1",
                          limit,
                          preload,
                          s->options->few ? "RETORT_FEW=1" : "RETORT_FEW=",
                          injected ? fault : NULL, /* last: the box's environment has it too */
                          NULL};
    cleanup_fd int filter = filter_file(&s->filter, &e);
    if (filter < 0 || step_fails("zygote-start", &e) < 0 || enter_root(s, environment, &e) < 0)
        goto failed;
    int null = open("/dev/null", O_RDONLY);
    const int from[] = {null, log, log, control, filter};
    if (null < 0 || fd_place(from, 5, 0, 5) < 0)
        goto failed;
    log = STDERR_FILENO; /* its old number is closed with the rest, or is somebody else's by now */
    close_range(ZYGOTE_FILTER_FD + 1, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* It may enter the namespaces of boxes, which are children of the keeper's, and nothing else. */
    if (chdir(BOX_WORKSPACE) < 0 || identity_keep_entering(&e) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        goto failed;
    execve(argv[0], argv, envp);
    err_set(&e, errno, "cannot start %s", argv[0]);
failed:
    dprintf(log, "%s\n", e.text[0] ? e.text : strerror(errno));
    _exit(127);
}

/* ---- what it says ---- */

static void on_words(struct state *s, void *ctx)
{
    struct zygote *z = ctx;
    char chunk[512];
    ssize_t n = read(z->log.fd, chunk, sizeof(chunk));

    if (n <= 0) {
        watch_close(s, &z->log);
        return;
    }
    /* Keep the end: the last line of a traceback is the one that says it. */
    size_t keep = sizeof(z->words) - 1 - (size_t)n;
    if (z->n_words > keep) {
        memmove(z->words, z->words + z->n_words - keep, keep);
        z->n_words = keep;
    }
    memcpy(z->words + z->n_words, chunk, (size_t)n);
    z->n_words += (size_t)n;
    z->words[z->n_words] = '\0';
}

static unsigned index_of(const struct state *s, const struct zygote *z)
{
    return (unsigned)(z - s->zygotes);
}

static void on_control(struct state *s, void *ctx)
{
    struct zygote *z = ctx;
    char why[512];
    struct fields f;
    struct err e;

    int r = msg_recv(z->control.fd, &s->in, &e);
    if (r <= 0) {
        if (r == 0 || e.code != EAGAIN)
            watch_close(s, &z->control); /* its death is dealt with when it is reaped */
        return;
    }
    fields_init(&f, s->in.data, s->in.len);
    msg_done(&s->in);
    switch (s->in.type) {
    case ZYGOTE_WARM:
        z->warm = true;
        z->stillborn = 0;
        zygote_owes(s, index_of(s, z), false);
        boxes_ask(s, index_of(s, z));
        break;
    case ZYGOTE_MADE: {
        uint32_t id = fields_get_u32(&f);
        box_answered(s, id, (pid_t)fields_get_u32(&f));
        break;
    }
    case ZYGOTE_POSTED: {
        uint32_t id = fields_get_u32(&f);
        box_posted(s, id, (pid_t)fields_get_u32(&f));
        break;
    }
    case ZYGOTE_DISMISSED:
        box_dismissed(s, fields_get_u32(&f));
        break;
    case ZYGOTE_FAILED: {
        uint32_t id = fields_get_u32(&f);
        fields_get_text(&f, why, sizeof(why));
        box_refused(s, id, why);
        break;
    }
    }
}

int zygote_start(struct state *s, unsigned environment, struct err *e)
{
    struct zygote *z = &s->zygotes[environment];
    cleanup_fd int mine = -1, its = -1, log_in = -1, log_out = -1;
    int pair[2];

    if (msg_pair(pair, e) < 0)
        return -1;
    mine = pair[0];
    its = pair[1];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_set(e, errno, "pipe");
    log_in = pair[0];
    log_out = pair[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_set(e, errno, "cannot fork the zygote");
    if (pid == 0)
        become_zygote(s, environment, its, log_out);
    z->pid = pid;
    z->warm = false;
    z->overdue = false;
    z->deadline_ms = clock_now_ms() + WARM_MS;
    z->n_words = 0;
    z->words[0] = '\0';
    z->started++;
    fd_set_nonblock(mine);
    fd_set_nonblock(log_in);
    if (watch_add(s, &z->control, fd_steal(&mine), on_control, z, e) < 0 ||
        watch_add(s, &z->log, fd_steal(&log_in), on_words, z, e) < 0)
        return -1;
    return 0;
}

void zygote_owes(struct state *s, unsigned environment, bool owes)
{
    unsigned patience_ms = s->options->patience_ms ? s->options->patience_ms : PATIENCE_MS;

    s->zygotes[environment].deadline_ms = owes ? clock_now_ms() + patience_ms : 0;
}

int64_t zygotes_next_ms(const struct state *s)
{
    int64_t next = 0;

    for (unsigned i = 0; i < s->options->n_environments; i++) {
        int64_t deadline = s->zygotes[i].deadline_ms;
        if (deadline && (!next || deadline < next))
            next = deadline;
    }
    return next;
}

void zygotes_check(struct state *s)
{
    for (unsigned i = 0; i < s->options->n_environments; i++) {
        struct zygote *z = &s->zygotes[i];
        if (!z->deadline_ms || z->deadline_ms > clock_now_ms() || z->pid == 0)
            continue;
        z->deadline_ms = 0;
        z->overdue = !z->warm;
        kill(z->pid, SIGKILL); /* zygote_died goes on */
    }
}

bool zygote_can_fork(const struct state *s, unsigned environment)
{
    return s->zygotes[environment].warm && s->zygotes[environment].control.fd >= 0;
}

static int zygote_say(struct state *s, const struct box *b, uint32_t what, const int *fds,
                      unsigned n_fds, struct err *e)
{
    cleanup_buf struct buf m = {0};

    msg_begin(&m, what);
    fields_put_u32(&m, b->id);
    box_plan_put(&m, &b->plan);
    return msg_send(s->zygotes[b->plan.environment].control.fd, &m, fds, n_fds, e);
}

int zygote_ask(struct state *s, const struct box *b, struct err *e)
{
    int fds[ZYGOTE_FDS] = {b->far.kernel_setup, b->far.out,     b->far.err,
                           b->far.cell_out,     b->far.cell_in, b->far.kernel_line};
    unsigned n = ZYGOTE_FD_CGROUP + b->n_ways;

    if (b->usher == USHER_WAITS)
        return zygote_say(s, b, ZYGOTE_FILL, NULL, 0, e);
    memcpy(fds + ZYGOTE_FD_NAMESPACES, b->namespaces, sizeof(b->namespaces));
    memcpy(fds + ZYGOTE_FD_CGROUP, b->ways, sizeof(b->ways));
    if (!b->stay_blank)
        return zygote_say(s, b, ZYGOTE_MAKE, fds, n, e);
    fds[n++] = b->network_fd;
    return zygote_say(s, b, ZYGOTE_POST, fds, n, e);
}

void zygote_dismiss(struct state *s, struct box *b)
{
    const struct zygote *z = &s->zygotes[b->plan.environment];
    struct err e;

    b->asked_zygote = true;
    if (!z->deadline_ms)
        zygote_owes(s, b->plan.environment, true);
    /* One that does not hear it, or is dead, takes its ushers along: boxes_zygote_lost goes on. */
    if (zygote_say(s, b, ZYGOTE_DISMISS, NULL, 0, &e) < 0 && z->pid)
        kill(z->pid, SIGKILL);
}

/* A zygote that had been warm, or was killed on its way there, is replaced at once, and nobody hears
 * of it. One that gave up by itself would do so again: whoever waits for it is told why. */
bool zygote_died(struct state *s, pid_t pid, int status)
{
    for (unsigned i = 0; i < s->options->n_environments; i++) {
        struct zygote *z = &s->zygotes[i];
        char why[1400];
        struct err e = {0};
        if (z->pid != pid)
            continue;
        while (z->log.fd >= 0) /* closes itself at the end */
            on_words(s, z);
        watch_close(s, &z->control);
        watch_close(s, &z->log);
        if (!z->warm)
            z->stillborn++;
        bool again =
            z->warm || (WIFSIGNALED(status) && !z->overdue && z->stillborn < STILLBORN_MAX);
        if (!again)
            z->stillborn = 0;
        z->pid = 0;
        z->warm = false;
        z->deadline_ms = 0;
        const char *name = s->options->environments[i].name;
        if (z->overdue)
            snprintf(why, sizeof(why),
                     "step zygote-start: the interpreter of environment \"%s\" was not ready after "
                     "%d s: %s",
                     name, WARM_MS / 1000, z->words);
        else
            snprintf(why, sizeof(why),
                     "step zygote-start: the interpreter of environment \"%s\" %s %d: %s", name,
                     WIFSIGNALED(status) ? "was killed by signal" : "left with status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), z->words);
        if (again && zygote_start(s, i, &e) == 0)
            boxes_zygote_lost(s, i, NULL);
        else
            boxes_zygote_lost(s, i, why);
        return true;
    }
    return false;
}
