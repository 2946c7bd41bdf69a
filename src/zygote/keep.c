/* keep: see keep.h.
 *
 * The live process asks init, which has the next process numbers come from a range whose members no guest
 * can signal (box/filter.c), and then forks as the zygote does, through a go-between that shares its
 * memory: so the C library's and Python's own handlers run, the one that waits is init's child and not the
 * guest's, and nobody's SIGCHLD tells of it.
 *
 *     live ──WANT──▶ init ──GO──▶ live ──clone(VM|VFORK)──▶ go-between ──fork()──▶ waiting ──WAITS──▶ init
 *
 * The one that waits gives up what it cannot have alone (pipes, sockets), opens its regular files anew, so
 * that their offsets are its own, and sleeps in recvmsg. It runs no Python before it is woken: every page
 * that it wrote to would be a copy.
 */
#include "zygote/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"
#include "wire/fields.h"
#include "wire/msg.h"
#include "wire/proto.h"
#include "zygote/branch.h"
#include "zygote/image.h"
#include "zygote/shared.h"

#define HIGH_FD 3000 /* out of the way of what the guest has open */
#define WAITING_OOM_SCORE "0"
#define LIVE_OOM_SCORE "200"
#define LOST_MAX 2000
#define FORK_TRIES 100
#define FORK_PAUSE_US 10000
#define PATIENCE_MS 6000
#define REST_MS                                                                                    \
    50 /* until one that waits looks for what it shares, and forgets what it looked at */
#define FILES_MS 60000 /* while init copies what has changed in the workspace */

static struct msg in;     /* 64 KiB: not on the stack */
static struct msg answer; /* of init's to the live one, which may still need what is in `in` */

/* ---- forking ---- */

void fork_reap(long pid)
{
    while (waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
}

__attribute__((noinline)) pid_t fork_apart(void)
{
    static volatile pid_t made; /* the go-between shares our memory */

    made = -1;
    long between = fork_raw();
    if (between == 0) {
        pid_t pid = fork();
        if (pid == 0)
            return 0;
        made = pid;
        _exit(0);
    }
    if (between < 0)
        return -1;
    fork_reap(between);
    return made;
}

/* ---- the one that waits ---- */

void keep_note_lost(struct buf *lost, const char *what, int fd)
{
    if (lost->len > LOST_MAX)
        return;
    buf_add_text(lost, lost->len ? "\n" : "");
    buf_add_fmt(lost, "%s %d", what, fd);
}

void keep_put_stoppers(int first, int last)
{
    int stopper = open("/dev/null", O_PATH | O_CLOEXEC);

    if (stopper < 0)
        _exit(1);
    for (int fd = first; fd <= last; fd++)
        if (fd != stopper && dup3(stopper, fd, O_CLOEXEC) < 0)
            _exit(1);
    if (stopper < first || stopper > last)
        close(stopper);
}

/* With an offset of its own. A lock on it (flock) stays the live one's. */
static void open_anew(int fd)
{
    char path[64];
    int flags = fcntl(fd, F_GETFL), cloexec = fcntl(fd, F_GETFD);
    off_t at = lseek(fd, 0, SEEK_CUR);

    if (flags & O_PATH)
        return; /* it has none */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int own = open(path, (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECT)) | O_CLOEXEC);
    if (own < 0)
        return; /* its rights have changed: then the offset is shared */
    if (at >= 0)
        lseek(own, at, SEEK_SET);
    dup3(own, fd, cloexec & FD_CLOEXEC ? O_CLOEXEC : 0);
    close(own);
}

/* False: it is nothing to speak of, the first descriptor as every session has it. */
static bool leave_behind(int fd, struct buf *lost)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return true;
    if (S_ISREG(st.st_mode)) {
        open_anew(fd);
    } else if (!S_ISCHR(st.st_mode) && !S_ISDIR(st.st_mode)) {
        if (fd > BOX_INIT_FD)
            keep_note_lost(lost,
                           S_ISSOCK(st.st_mode)   ? "socket"
                           : S_ISFIFO(st.st_mode) ? "pipe"
                                                  : "descriptor",
                           fd);
        keep_put_stoppers(fd, fd);
    }
    return fd != STDIN_FILENO || !S_ISCHR(st.st_mode);
}

/* What the one that waits has for itself, above all that is the guest's. */
struct own {
    int line;      /* to init, from when it has it */
    int far;       /* the line's other end */
    int init;      /* the way that the live one uses too */
    int oom_score; /* who is ended first when memory is short */
    int pagemap;   /* until it has rested, or has a score; or -1, and then forks of it cost more */
    size_t shared; /* bytes */
    bool looked;   /* for them */
    struct belongings may; /* have, of the guest's */
};

static int put_high(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

    if (high < 0) /* the guest has a lower limit */
        high = fcntl(fd, F_DUPFD_CLOEXEC, BOX_SETUP_FD);
    if (high < 0)
        _exit(1);
    return high;
}

static bool is_own(const struct own *o, int fd)
{
    return fd == o->line || fd == o->far || fd == o->init || fd == o->oom_score || fd == o->pagemap;
}

static void part_from_live(struct own *o, struct buf *lost)
{
    /* Whatever is there, or not: see take_places. */
    keep_put_stoppers(STDOUT_FILENO, BOX_INIT_FD);
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        _exit(1); /* it would share what it must not */
    o->may.files = false;
    for (struct dirent *entry; (entry = readdir(d));) {
        int fd = atoi(entry->d_name);
        bool ours = is_own(o, fd) || fd == dirfd(d) || (fd > 0 && fd <= BOX_INIT_FD);
        if (entry->d_name[0] != '.' && !ours && leave_behind(fd, lost))
            o->may.files = true;
    }
    closedir(d);
}

/* Its file, and before /proc is shut: later on the process may not open it itself. */
static int open_oom_score(const char *score)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        _exit(1);
    int high = put_high(fd);
    close(fd);
    /* Where that is refused it goes by size, and the live one is the largest. */
    if (write(high, score, strlen(score)) < 0)
        errno = 0;
    return high;
}

static void own_open(struct own *ret, int init)
{
    struct err e;
    int pair[2];
    cleanup_fd int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    if (msg_pair(pair, &e) < 0)
        _exit(1);
    *ret = (struct own){.line = put_high(pair[0]),
                        .far = put_high(pair[1]),
                        .init = put_high(init),
                        .oom_score = open_oom_score(WAITING_OOM_SCORE),
                        .may = {.files = true, .shared = true},
                        .pagemap = fcntl(pagemap, F_DUPFD_CLOEXEC, HIGH_FD)};
    close(pair[0]);
    close(pair[1]);
}

/* init looks at our number, which is another one where somebody else's fork came in between, and then lets
 * go of our line. */
static void tell_waits(struct own *o, uint32_t n, const struct buf *lost)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    msg_begin(&b, LINE_WAITS);
    fields_put_u32(&b, n);
    fields_put_bytes(&b, lost->data, lost->len);
    if (msg_send(o->init, &b, &o->far, 1, &e) < 0)
        _exit(1);
    fd_close(&o->far);
    fd_close(&o->init);
}

static void look_for_shared(struct own *o)
{
    struct shared_list l;

    if (o->looked)
        return;
    o->looked = shared_note(&l) == 0;
    o->may.shared = !o->looked || l.n > 0;
    o->shared = shared_left_behind(&l);
    shared_done(&l);
}

/* What is ours alone: all that the live one has written to since, and all that it has given back. */
static void tell_weight(struct own *o)
{
    char text[2048];
    cleanup_buf struct buf b = {0};
    struct err e;
    uint64_t bytes = 0;

    if (fd_get_text(AT_FDCWD, "/proc/self/smaps_rollup", text, sizeof(text), &e) == 0) {
        const char *dirty = strstr(text, "\nPrivate_Dirty:");
        bytes = dirty ? strtoull(dirty + strlen("\nPrivate_Dirty:"), NULL, 10) * 1024 : 0;
    }
    look_for_shared(o);
    msg_begin(&b, WAITING_WEIGHT);
    fields_put_u64(&b, bytes);
    fields_put_u64(&b, o->shared);
    if (msg_send(o->line, &b, NULL, 0, &e) < 0)
        _exit(0);
}

/* Those that were ended with the interpreter may still count as processes of the box for a moment. */
static pid_t fork_successor(void)
{
    pid_t pid = fork_apart();

    for (int tries = 0; pid < 0 && tries < FORK_TRIES; tries++) {
        usleep(FORK_PAUSE_US);
        pid = fork_apart();
    }
    return pid;
}

static void take_score(int fd)
{
    char text[16];
    struct fields f;

    fields_init(&f, in.data, in.len);
    int len = snprintf(text, sizeof(text), "%u", fields_get_u32(&f));
    if (write(fd, text, (size_t)len) < 0)
        _exit(1);
}

/* Until init asks for a successor: that is a fork of ours, with a number that it may signal itself by. We
 * go on waiting, for the next time. What init has sent are the successor's descriptors. True: it is one for
 * another box. */
static bool sleep_on(struct own *o)
{
    struct pollfd line = {.fd = o->line, .events = POLLIN};
    bool branch = false;
    struct err e;

    for (;; msg_done(&in)) {
        /* It takes a millisecond, for which init and the live one have a better use at first. */
        if ((!o->looked || o->pagemap >= 0) && poll(&line, 1, REST_MS) == 0) {
            look_for_shared(o);
            image_forget(o->pagemap);
            fd_close(&o->pagemap);
        }
        if (msg_recv(o->line, &in, &e) <= 0)
            _exit(0); /* init is gone, or has no use for us any more */
        if (in.type == WAITING_WAKE && in.n_fds == WAITING_FDS && fork_successor() == 0)
            break;
        branch = in.type == WAITING_BRANCH && branch_fork(&in) == 0;
        if (branch)
            break;
        if (in.type == WAITING_WEIGH)
            tell_weight(o);
        if (in.type == WAITING_SCORE) {
            fd_close(&o->pagemap); /* init goes by the size that we have now */
            take_score(o->oom_score);
        }
    }
    fd_close(&o->line);
    fd_close(&o->oom_score);
    fd_close(&o->pagemap);
    return branch;
}

/* As the kernel process was when it was made. There are stoppers at these places, so nothing of what has come lies
 * there; a branch's come in the same order. */
static void take_places(void)
{
    close(open_oom_score(LIVE_OOM_SCORE));
    for (int i = 0; i < WAITING_FDS; i++)
        if (dup3(in.fds[i], 1 + i, 1 + i > STDERR_FILENO ? O_CLOEXEC : 0) < 0)
            _exit(1);
}

static void become_live(void)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    if (setsid() < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
        _exit(1);
    take_places();
    msg_done(&in);
    msg_begin(&b, LINE_HERE);
    if (msg_send(BOX_INIT_FD, &b, NULL, 0, &e) < 0)
        _exit(1);
}

static void note_shared(struct buf *lost, size_t bytes)
{
    if (bytes && lost->len <= LOST_MAX)
        buf_add_fmt(lost, "%s" POINT_SHARED, lost->len ? "\n" : "", bytes >> 10);
}

/* In the new process, with a way to init. Returns when it is the live one; true: of another box. `bare`: it has nothing
 * to part from. */
static bool wait_here(uint32_t n, int init, bool *bare, struct buf *lost)
{
    struct own own;

    if (setsid() < 0)
        _exit(1);
    own_open(&own, init);
    msg_done(&in); /* of a branch: its live one's */
    if (*bare)
        own.may.files = false;
    else
        part_from_live(&own, lost);
    prctl(PR_SET_DUMPABLE, 0); /* /proc shows it to nobody */
    tell_waits(&own, n, lost);
    bool branch = sleep_on(&own);
    if (branch) {
        branch_join(&in, own.may, lost); /* before any Python: it has rights over the other box */
    } else {
        look_for_shared(&own);
        note_shared(lost, own.shared);
    }
    *bare = branch && !own.may.files; /* its channel is not in its places yet: see take_places */
    return branch;
}

/* ---- the live one ---- */

static uint32_t seq; /* of what init was asked last */

/* init's answer to that; the guest may have closed the line, or read from it. */
static bool hear(int init, uint32_t wanted, int patience_ms)
{
    struct pollfd line = {.fd = init, .events = POLLIN};
    struct fields f;
    struct err e;

    while (poll(&line, 1, patience_ms) > 0 && msg_recv(init, &answer, &e) > 0) {
        fields_init(&f, answer.data, answer.len);
        bool ours = fields_get_u32(&f) == seq && fields_end(&f);
        msg_done(&answer);
        if (ours) /* else it is late, and was for the one before */
            return answer.type == wanted;
    }
    return false;
}

bool keep_want(int init, uint32_t n)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, LINE_WANT);
    fields_put_u32(&b, ++seq);
    fields_put_u32(&b, n);
    return msg_send(init, &b, NULL, 0, &ignored) == 0;
}

/* init need not wait for a fork that does not come: meanwhile others would get its number. */
static void call_off(int init)
{
    cleanup_buf struct buf b = {0};
    struct err ignored;

    msg_begin(&b, LINE_FAILED);
    fields_put_u32(&b, seq);
    msg_send(init, &b, NULL, 0, &ignored);
}

/* As fork_apart, when init has made way for it. */
static pid_t fork_to_wait(int init)
{
    if (!hear(init, LINE_GO, PATIENCE_MS))
        return -1;
    pid_t pid = fork_apart();
    if (pid < 0)
        call_off(init);
    return pid;
}

static bool is_taken(int init)
{
    return hear(init, LINE_TAKEN, FILES_MS);
}

/* What has become of the one that waited. */
struct woken {
    uint32_t n; /* the cell that it comes after */
    bool branch;
    pid_t first; /* of a branch: its first state, or -1 */
    struct buf lost;
    size_t seeded; /* bytes of the seed: of a branch, and of what waits for it */
    unsigned char seed[BRANCH_SEED];
};

/* A signal that stops us may cut it short. */
static void draw_seed(struct woken *w)
{
    for (w->seeded = 0; w->seeded < sizeof(w->seed);) {
        ssize_t n = getrandom(w->seed + w->seeded, sizeof(w->seed) - w->seeded, 0);
        if (n < 0 && errno != EINTR)
            _exit(1);
        w->seeded += n > 0 ? (size_t)n : 0;
    }
}

/* In the new process. A branch has its first state wait before any Python runs in it: else the pages that it writes to
 * at first would be shared again, and copied twice. That one has then seen nothing of what Python does in a branch,
 * and does it when it is woken, with the same seed: so it is what the branch was. Both have no right over the box
 * any more (branch_join), and the branch's init lets this one wait as it does any other. */
static void wait_to_be_woken(struct woken *w)
{
    int init = BOX_INIT_FD;
    struct fields f;
    bool bare = false;

    for (;;) {
        w->branch = wait_here(w->n, init, &bare, &w->lost);
        fields_init(&f, in.data, in.len);
        w->n = fields_get_u32(&f); /* a later one than ours, when that left no trace */
        if (!w->branch)
            return;
        draw_seed(w);
        init = in.fds[BRANCH_FD_LINE];
        w->first = fork_to_wait(init); /* branch_join has asked */
        if (w->first != 0)
            return;
        w->lost.len = 0; /* the branch tells that */
    }
}

/* After what the guest has registered for forks: a branch in which that does not end never stands. Its owner
 * comes back with a cell while init takes the first state in. */
static bool become_branch(pid_t first)
{
    take_places();
    branch_ready(&in);
    msg_done(&in);
    return first > 0 && is_taken(BOX_INIT_FD);
}

static PyObject *go_on(const struct woken *w)
{
    bool waits = true;

    PyOS_AfterFork_Child();
    if (w->branch)
        waits = become_branch(w->first);
    else
        become_live();
    return Py_BuildValue("(s#OIy#O)", w->lost.data ? w->lost.data : "", (Py_ssize_t)w->lost.len,
                         w->branch ? Py_True : Py_False, w->n, w->seed, (Py_ssize_t)w->seeded,
                         waits ? Py_True : Py_False);
}

PyObject *keep(PyObject *self, PyObject *args)
{
    struct woken w = {0};
    sigset_t all, before;
    unsigned n;
    const char *lost;
    (void)self;

    if (!PyArg_ParseTuple(args, "Is", &n, &lost))
        return NULL;
    /* Before init is asked, and with signals: this runs what the guest has registered (os.register_at_fork),
     * which may fork itself, and may take its time, until an interrupt. */
    PyOS_BeforeFork();
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before); /* a handler must not run in the go-between */
    pid_t pid = keep_want(BOX_INIT_FD, n) ? fork_to_wait(BOX_INIT_FD) : -1;
    if (pid == 0) {
        w.n = n;
        buf_add_text(&w.lost, lost);
        wait_to_be_woken(&w);
        PyObject *woken = go_on(&w);
        buf_done(&w.lost);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return woken;
    }
    bool waits = pid > 0 && is_taken(BOX_INIT_FD);
    sigprocmask(SIG_SETMASK, &before, NULL);
    PyOS_AfterFork_Parent();
    return PyBool_FromLong(waits);
}
