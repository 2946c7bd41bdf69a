/* zygote: the fork server, as an extension of the environment's own CPython (stable ABI, 3.10 up).
 *
 * The interpreter has imported its libraries and waits here, in one thread, for the keeper's word.
 * For each box it makes a fork of itself which goes into the box and returns to Python there; the
 * zygote itself never runs a byte of a user's and holds no secret, because every box can read all of
 * its memory.
 *
 * The fork goes through a go-between (between.h), which in a blank box is there already.
 *
 * Rights: CAP_SYS_ADMIN over the keeper's user namespace, for entering boxes; nothing on the host.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/box.h"
#include "box/steps.h"
#include "wire/fields.h"
#include "wire/msg.h"
#include "wire/proto.h"
#include "zygote/between.h"
#include "zygote/hot.h"
#include "zygote/keep.h"
#include "zygote/objects.h"
#include "zygote/pages.h"
#include "zygote/zygote.h"

static struct filter filter;
static struct msg in; /* 64 KiB: not on the stack */

/* ---- forking ---- */

#define HAS_THREADS "a preloaded library has started a thread; take it out of preload"

/* Threads do not survive a fork, but the locks they hold do. */
static int only_one_thread(void)
{
    struct stat st;
    return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

/* `pid_namespace` of -1: by the usher of this box. */
static pid_t fork_python(uint32_t box, int pid_namespace, int cgroup_fd)
{
    const struct sched_param plain = {0};
    sigset_t all, before;

    if (!only_one_thread()) {
        errno = EDEADLK;
        return -1;
    }
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    /* When the go-between is gone we are woken, often on the processor that the new process has just begun on: as
     * a batch job we do not take it away. */
    bool usual = sched_getscheduler(0) == SCHED_OTHER;
    if (usual)
        sched_setscheduler(0, SCHED_BATCH, &plain);
    pid_t pid =
        pid_namespace < 0 ? between_fork_posted(box) : between_fork(pid_namespace, cgroup_fd);
    int saved = errno;
    if (usual)
        sched_setscheduler(0, SCHED_OTHER, &plain);
    if (pid == 0)
        PyOS_AfterFork_Child();
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}

/* ---- talking to the keeper ---- */

static void tell(int fd, struct buf *b)
{
    struct err e;

    if (msg_send(fd, b, NULL, 0, &e) < 0)
        _exit(0); /* the keeper is gone */
}

static void tell_warm(const char *versions)
{
    cleanup_buf struct buf b = {0};

    msg_begin(&b, ZYGOTE_WARM);
    fields_put_text(&b, versions);
    tell(ZYGOTE_CONTROL_FD, &b);
}

static void tell_of(uint32_t what, uint32_t box, pid_t pid)
{
    cleanup_buf struct buf b = {0};

    msg_begin(&b, what);
    fields_put_u32(&b, box);
    fields_put_u32(&b, (uint32_t)pid);
    tell(ZYGOTE_CONTROL_FD, &b);
}

static void tell_failed(uint32_t box, const char *why)
{
    cleanup_buf struct buf b = {0};

    msg_begin(&b, ZYGOTE_FAILED);
    fields_put_u32(&b, box);
    fields_put_text(&b, why);
    tell(ZYGOTE_CONTROL_FD, &b);
}

static int born_in(const struct box_plan *plan)
{
    return plan->has_cgroup && !plan->attaches ? in.fds[ZYGOTE_FD_CGROUP] : -1;
}

/* ---- into the box ---- */

/* A process's way in, with the descriptors of the message that asked for it. */
struct way_in {
    struct box_kernel kernel;
    int namespaces[BOX_NAMESPACES];
    const char *failed; /* the step */
    struct err e;
};

static void find_way(struct way_in *ret, const struct box_plan *plan, unsigned n_fds)
{
    *ret = (struct way_in){
        .kernel = {.plan = plan,
                   .filter = &filter,
                   .namespaces = ret->namespaces,
                   .stdout_fd = in.fds[ZYGOTE_FD_STDOUT],
                   .stderr_fd = in.fds[ZYGOTE_FD_STDERR],
                   .channel_out_fd = in.fds[ZYGOTE_FD_CELL_OUT],
                   .channel_in_fd = in.fds[ZYGOTE_FD_CELL_IN],
                   .line_fd = in.fds[ZYGOTE_FD_LINE],
                   .setup_fd = in.fds[ZYGOTE_FD_SETUP],
                   .ways = {.fds = in.fds + ZYGOTE_FD_CGROUP,
                            .n = plan->attaches ? n_fds - ZYGOTE_FD_CGROUP : 0}},
        .failed = "kernel-join",
    };
    memcpy(ret->namespaces, in.fds + ZYGOTE_FD_NAMESPACES, BOX_BORN_INTO * sizeof(int));
}

/* What no two boxes may share: random numbers, for one. It makes no difference whether it is in its box. */
static void renew(PyObject *prepare)
{
    PyObject *done = PyObject_CallObject(prepare, NULL);

    if (!done) {
        PyErr_Print();
        _exit(1); /* which the keeper hears of */
    }
    Py_DECREF(done);
}

_Noreturn static void give_up(const struct way_in *w)
{
    cleanup_buf struct buf b = {0};
    struct err gone;

    msg_begin(&b, SETUP_FAILED);
    fields_put_text(&b, w->failed);
    fields_put_text(&b, w->e.text);
    msg_send(w->kernel.setup_fd, &b, NULL, 0, &gone);
    _exit(1);
}

/* The last steps, which are the process's own. Does not return on failure. */
static void begin(struct way_in *w)
{
    cleanup_buf struct buf b = {0};

    if (box_kernel_begin(&w->kernel, &w->failed, &w->e) < 0)
        give_up(w);
    msg_begin(&b, LINE_HERE);
    tell(BOX_INIT_FD, &b);
}

/* In the new process: attach, prepare what needs no box, wait until init's half stands, then go in. */
static void enter_box(const struct box_plan *plan, PyObject *prepare)
{
    static struct msg go;
    struct way_in w;
    struct err gone;

    find_way(&w, plan, in.n_fds);
    /* Said when the keeper listens, which is after its GO. */
    int attached = box_kernel_attach(&w.kernel, &w.failed, &w.e);
    renew(prepare); /* meanwhile init builds the root */
    if (msg_recv(w.kernel.setup_fd, &go, &gone) <= 0 || go.type != SETUP_GO || go.n_fds != 1)
        _exit(1);
    w.namespaces[BOX_NS_NET] = go.fds[0];
    if (attached < 0 || box_kernel_seal(&w.kernel, &w.failed, &w.e) < 0)
        give_up(&w);
    begin(&w);
}

/* An usher's way in. Root and network stand already. */
static bool seal(void *ctx)
{
    struct way_in *w = ctx;

    if (setns(w->namespaces[BOX_NS_PID], CLONE_NEWPID) < 0) {
        err_set(&w->e, errno, "setns");
        return false;
    }
    return box_kernel_attach(&w->kernel, &w->failed, &w->e) == 0 &&
           box_kernel_seal(&w->kernel, &w->failed, &w->e) == 0;
}

/* In what the usher has forked: it is in. */
static void begin_inside(const struct box_plan *plan, PyObject *prepare)
{
    struct way_in w = {.kernel = {.plan = plan, .setup_fd = BOX_SETUP_FD}};

    begin(&w);
    renew(prepare);
}

/* ---- what the keeper asks for ---- */

static void post_usher(uint32_t box, const struct box_plan *plan)
{
    sigset_t all, before;
    struct way_in w;

    if (!only_one_thread()) {
        tell_failed(box, HAS_THREADS);
        return;
    }
    find_way(&w, plan, in.n_fds - 1);
    w.namespaces[BOX_NS_NET] = in.fds[in.n_fds - 1];
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t usher = between_post(box, born_in(plan), seal, &w);
    if (usher < 0 && !w.e.text[0])
        err_set(&w.e, errno, "cannot post an usher");
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (usher < 0)
        tell_failed(box, w.e.text);
    else
        tell_of(ZYGOTE_POSTED, box, usher);
}

/* 1 in a new box's process; 0 in the zygote. */
static int fork_box(uint32_t box, const struct box_plan *plan, PyObject *prepare)
{
    bool posted = in.type == ZYGOTE_FILL;
    struct err e;

    pid_t pid = posted ? fork_python(box, -1, -1)
                       : fork_python(box, in.fds[ZYGOTE_FD_NAMESPACES + BOX_NS_PID], born_in(plan));
    if (pid == 0) {
        if (posted)
            begin_inside(plan, prepare);
        else
            enter_box(plan, prepare);
        return 1;
    }
    if (pid > 0) {
        tell_of(ZYGOTE_MADE, box, pid);
        return 0;
    }
    if (errno == EDEADLK)
        err_set(&e, 0, HAS_THREADS);
    else
        err_set(&e, errno, "cannot fork");
    if (posted)
        between_dismiss(box); /* where it has not even been asked */
    tell_failed(box, e.text);
    return 0;
}

/* The same. */
static int obey(struct box_plan *ret_plan, PyObject *prepare)
{
    struct fields f;

    fields_init(&f, in.data, in.len);
    uint32_t box = fields_get_u32(&f);
    box_plan_get(&f, ret_plan);
    unsigned fds = ZYGOTE_FD_CGROUP + (ret_plan->has_cgroup ? 1U : 0U);
    if (!fields_end(&f))
        return 0;
    if (in.type == ZYGOTE_POST && in.n_fds > fds)
        post_usher(box, ret_plan);
    if (in.type == ZYGOTE_DISMISS) {
        between_dismiss(box);
        tell_of(ZYGOTE_DISMISSED, box, 0);
    }
    bool can_fork = in.type == ZYGOTE_FILL || (in.type == ZYGOTE_MAKE && in.n_fds >= fds);
    return can_fork ? fork_box(box, ret_plan, prepare) : 0;
}

/* ---- Python's side ---- */

static int read_program(struct sock_fprog *ret)
{
    uint32_t len;

    if (fd_read_full(ZYGOTE_FILTER_FD, &len, sizeof(len)) != sizeof(len) || len > 65535)
        return -1;
    size_t size = len * sizeof(struct sock_filter);
    *ret = (struct sock_fprog){.len = (unsigned short)len, .filter = xcalloc(1, size)};
    return fd_read_full(ZYGOTE_FILTER_FD, ret->filter, size) == (ssize_t)size ? 0 : -1;
}

static int read_filter(void)
{
    if (read_program(&filter.programs[FILTER_GUEST]) < 0 ||
        read_program(&filter.programs[FILTER_LAST]) < 0)
        return -1;
    close(ZYGOTE_FILTER_FD);
    return 0;
}

static PyObject *serve(PyObject *self, PyObject *args)
{
    const char *versions;
    PyObject *prepare, *rehearse, *more;
    struct box_plan plan;
    struct err e;
    (void)self;

    if (!PyArg_ParseTuple(args, "sOOO", &versions, &prepare, &rehearse, &more))
        return NULL;
    if (read_filter() < 0) {
        PyErr_SetString(PyExc_RuntimeError, "this runs only as a zygote of retort's keeper");
        return NULL;
    }
    steps_inject(getenv("RETORT_FAULT"));
    /* For good: from here on the zygote does nothing but fork, and runs no Python itself. Going back
     * after each fork (PyOS_AfterFork_Parent) would write to memory that was shared a moment ago, and
     * so split its huge pages for all forks to come. */
    PyOS_BeforeFork();
    if (rehearse != Py_None)
        hot_settle(rehearse, more);
    /* The guest's own goes on here, once for all forks. */
    if (filter_load_guest(&filter, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        _exit(1);
    }
    /* All boxes and ushers have this memory, or begin with it: nobody may look at it from outside. */
    prctl(PR_SET_DUMPABLE, 0);
    tell_warm(versions);
    for (;;) {
        int r = msg_recv(ZYGOTE_CONTROL_FD, &in, &e);
        if (r == 0 || (r < 0 && e.code != EBADMSG))
            _exit(0); /* the keeper is gone */
        if (r > 0 && obey(&plan, prepare))
            break;
        msg_done(&in);
    }
    double cpus = plan.cpus_milli == UINT32_MAX ? 0 : plan.cpus_milli / 1000.0;
    unsigned long long memory = plan.memory == UINT64_MAX ? 0 : plan.memory;
    return Py_BuildValue("(dKO)", cpus, memory, plan.awaited ? Py_True : Py_False);
}

/* The box is ready: everything that can be done before the first cell has been done. */
static PyObject *ready(PyObject *self, PyObject *args)
{
    cleanup_buf struct buf b = {0};
    (void)self;
    (void)args;

    msg_begin(&b, SETUP_DONE);
    tell(BOX_SETUP_FD, &b);
    close(BOX_SETUP_FD);
    Py_RETURN_NONE;
}

static PyObject *settle(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    struct image image;
    /* Once here what every fork does first, as if this were one: the loader binds the functions that are
     * called at no other time, which takes a dozen pages. */
    PyOS_BeforeFork();
    PyOS_AfterFork_Child();
    image_open(&image);
    objects_settle(&image);
    pages_settle(&image);
    image_close(&image);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"settle", settle, METH_NOARGS, "settle(): all is imported and warm; get ready for forks."},
    {"serve", serve, METH_VARARGS,
     "serve(versions, prepare, rehearse, more): fork boxes on the keeper's word. In each of\n"
     "them it calls prepare(), and returns (cpus, memory, awaited) when it is in its box.\n"
     "rehearse() does, in a fork that ends, what every box does (or is None), and more()\n"
     "what only some do."},
    {"keep", keep, METH_VARARGS, "keep(n, lost): see keep.h."},
    {"ready", ready, METH_NOARGS, "ready(): tell the keeper that this box can be used."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_retort", "retort's fork server", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__retort(void); /* Python looks it up by name */

PyMODINIT_FUNC PyInit__retort(void)
{
    pages_gather();
    PyObject *self = PyModule_Create(&module);
    PyObject *channel = Py_BuildValue("(ii)", BOX_CHANNEL_OUT_FD, BOX_CHANNEL_IN_FD);
    /* CHANNEL: the descriptors to the owner in every box. BRANCH_SEED: what keep() returns of one has so many bytes. */
    if (self && channel && PyModule_AddIntConstant(self, "BRANCH_SEED", BRANCH_SEED) == 0 &&
        PyModule_AddObject(self, "CHANNEL", channel) == 0)
        return self;
    Py_XDECREF(channel);
    Py_XDECREF(self);
    return NULL;
}
