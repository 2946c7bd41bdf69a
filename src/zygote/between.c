/* between: see between.h. Runs in the zygote.
 *
 * Processes with one memory have one errno, one heap and one set of locks too. So they take turns: while a go-between
 * runs the zygote waits, for its end or for its word; and an usher that waits makes no call but futex(), and that not
 * through the C library.
 */
#include "zygote/between.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A call as the kernel knows it. Inline, because clone3 without a stack of its own returns twice in one stack frame, as
 * vfork does: of a function that was called, the child would overwrite the parent's return address. */
static inline __attribute__((always_inline)) long raw_call(long nr, const void *a, long b, long c,
                                                           long d)
{
    long r;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = (long)a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    r = x0;
#else
#error "retort does not know this processor yet"
#endif
    return r;
}

/* What a go-between found; it shares our memory. */
static volatile pid_t made;
static volatile int made_errno;

static void note_made(pid_t pid)
{
    made = pid;
    made_errno = errno;
}

static struct clone_args shortly(int cgroup_fd)
{
    return (struct clone_args){
        .flags = CLONE_VM | CLONE_VFORK | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)(cgroup_fd >= 0 ? cgroup_fd : 0),
    };
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* In the zygote, when a go-between was there that has noted what it made. */
static pid_t after(long between)
{
    if (between < 0) {
        errno = (int)-between;
        return -1;
    }
    reap((pid_t)between);
    errno = made_errno;
    return made;
}

/* The go-between. Returns in what it has forked only. A function, so that it leaves the zygote's stack frame alone. */
static __attribute__((noinline)) pid_t fork_inside(int pid_namespace)
{
    pid_t pid = setns(pid_namespace, CLONE_NEWPID) < 0 ? -1 : fork();

    if (pid == 0)
        return 0;
    note_made(pid);
    _exit(0);
}

__attribute__((noinline)) pid_t between_fork(int pid_namespace, int cgroup_fd)
{
    struct clone_args args = shortly(cgroup_fd);

    errno = ESRCH;
    note_made(-1);
    long between = raw_call(SYS_clone3, &args, sizeof(args), 0, 0);
    return between == 0 ? fork_inside(pid_namespace) : after(between);
}

/* ---- ushers ---- */

#define STACK_SIZE                                                                                 \
    ((size_t)256 << 10) /* fork() calls what libraries have registered; little of it is touched */
#define GUARD_SIZE ((size_t)64 << 10) /* a multiple of every page */

/* Where it is. The kernel writes GONE when it ends, however it ends. */
enum { GONE = 0, BEGINS, GOES_IN, WAITS, FORKS, LEAVES };

struct post {
    struct post *next;
    uint32_t box;
    int at; /* of the above; between processes */
    pid_t zygote, usher;
    bool (*seal)(void *ctx);
    void *ctx;
    bool sealed;
    jmp_buf home; /* the zygote's stack, for what is forked */
};

static struct post *posts;

/* A guard, the usher's stack, and above it the post. It stays, for the next usher: one that was killed from outside may
 * still be there to be reaped. */
static struct post *post_free(void)
{
    for (struct post *p = posts; p; p = p->next)
        if (__atomic_load_n(&p->at, __ATOMIC_ACQUIRE) == GONE) {
            if (p->usher > 0)
                waitpid(p->usher, NULL, WNOHANG);
            return p;
        }
    char *memory = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (mprotect(memory, GUARD_SIZE, PROT_NONE) < 0) {
        munmap(memory, GUARD_SIZE + STACK_SIZE);
        return NULL;
    }
    struct post *p = (struct post *)(memory + GUARD_SIZE + STACK_SIZE) - 1;
    p->next = posts;
    posts = p;
    return p;
}

/* Not the private kind of futex: the kernel wakes by the other when an usher ends. */
static void await_change(struct post *p, int from)
{
    while (__atomic_load_n(&p->at, __ATOMIC_ACQUIRE) == from)
        raw_call(SYS_futex, &p->at, FUTEX_WAIT, from, 0);
}

/* False: it is not there any more. */
static bool change(struct post *p, int from, int to)
{
    bool was =
        __atomic_compare_exchange_n(&p->at, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);

    if (was)
        raw_call(SYS_futex, &p->at, FUTEX_WAKE, 1, 0);
    return was;
}

/* Whenever it becomes somebody else the kernel forgets both: that it ends with the zygote, and (on some hosts) that
 * nobody may look at their memory. */
static bool be_bound(const struct post *p)
{
    return raw_call(SYS_prctl, (void *)PR_SET_DUMPABLE, 0, 0, 0) == 0 &&
           raw_call(SYS_prctl, (void *)PR_SET_PDEATHSIG, SIGKILL, 0, 0) == 0 &&
           raw_call(SYS_getppid, NULL, 0, 0, 0) == p->zygote; /* else it was too late */
}

/* What an usher does, on its own stack. What it forks goes on where the zygote is, on a copy of that one's. */
static int usher(void *post)
{
    struct post *p = post;

    if (!be_bound(p))
        _exit(1);
    await_change(p, BEGINS);
    p->sealed = p->seal(p->ctx) && be_bound(p);
    if (!p->sealed)
        _exit(1);
    change(p, GOES_IN, WAITS);
    await_change(p, WAITS);
    if (p->at == FORKS) {
        pid_t pid = fork();
        if (pid == 0)
            longjmp(p->home, 1);
        note_made(pid);
    }
    _exit(0);
}

static __attribute__((noinline)) _Noreturn void clone_usher(struct post *p)
{
    const int flags = CLONE_VM | CLONE_PARENT | CLONE_CHILD_CLEARTID | SIGCHLD;

    __atomic_store_n(&p->at, BEGINS, __ATOMIC_RELEASE);
    pid_t pid = clone(usher, p, flags, p, NULL, NULL, &p->at);
    if (pid < 0)
        __atomic_store_n(&p->at, GONE, __ATOMIC_RELEASE);
    note_made(pid);
    _exit(0);
}

__attribute__((noinline)) pid_t between_post(uint32_t box, int cgroup_fd, bool (*seal)(void *ctx),
                                             void *ctx)
{
    struct clone_args args = shortly(cgroup_fd);
    struct post *p = post_free();

    if (!p)
        return -1;
    p->box = box;
    p->zygote = getpid();
    p->seal = seal;
    p->ctx = ctx;
    p->sealed = false;
    errno = ESRCH;
    note_made(-1);
    /* Through a go-between, as every fork: it is born in the box's cgroup. */
    long between = raw_call(SYS_clone3, &args, sizeof(args), 0, 0);
    if (between == 0)
        clone_usher(p);
    p->usher = after(between);
    if (p->usher < 0)
        return -1;
    if (change(p, BEGINS, GOES_IN))
        await_change(p, GOES_IN);
    if (p->sealed)
        return p->usher;
    reap(p->usher);
    errno = ESRCH;
    return -1;
}

static struct post *post_find(uint32_t box)
{
    for (struct post *p = posts; p; p = p->next)
        if (p->box == box && __atomic_load_n(&p->at, __ATOMIC_ACQUIRE) == WAITS)
            return p;
    return NULL;
}

/* Reaped, not merely done: until then it may still have our memory. */
static void let(struct post *p, int to)
{
    if (change(p, WAITS, to))
        await_change(p, to);
    reap(p->usher);
}

pid_t between_fork_posted(uint32_t box)
{
    /* Not on the stack, to which we return twice. */
    static struct post *asked;
    static stack_t for_signals; /* of libraries; an usher has none, and nor has what it forks */

    asked = post_find(box);
    errno = ESRCH;
    note_made(-1);
    if (!asked || sigaltstack(NULL, &for_signals) < 0)
        return -1;
    if (setjmp(asked->home) != 0) {
        if (!(for_signals.ss_flags & SS_DISABLE))
            sigaltstack(&for_signals, NULL);
        return 0;
    }
    let(asked, FORKS);
    errno = made_errno;
    return made;
}

void between_dismiss(uint32_t box)
{
    struct post *p = post_find(box);

    if (p)
        let(p, LEAVES);
}
