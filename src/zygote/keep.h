/* keep: a fork of a live interpreter that waits, to take its place when it dies. See
 * docs/decisions/2026-11-16-checkpoints.md. */
#pragma once

/* Before Python.h is included by others it must be here: the stable ABI. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <sys/syscall.h>
#include <sys/types.h>
#include <sched.h>
#include <stdbool.h>

#include "base/buf.h"

/* keep(n, lost): True in the live process: one waits now, with the state after cell n; False: it could not
 * be. In the one that waited and was woken, a tuple: all that is lost, a line each; whether it is a branch, of
 * another session from now on; the cell that it comes after; the seed (bytes) for a branch or, the same, for what waits
 * with its first state, else none; and whether one waits with the state that it begins with. */
PyObject *keep(PyObject *self, PyObject *args);

#define BRANCH_SEED 5032 /* bytes: see SEEDED in reseed.py */

/* For branch.c. */
void keep_note_lost(struct buf *lost, const char *what, int fd);
/* Something at each of these numbers that can be closed, and nothing else: the guest's objects still have them, and what
 * is opened next must not come to lie there. No directory: from one of the old root, a branch could go on to its files. */
void keep_put_stoppers(int first, int last);
/* Ask the init at the end of this line to make way for one that waits, with the state after cell n. */
bool keep_want(int init, uint32_t n);

/* 0 in the new process, its number in the old one, or -1. */
pid_t fork_apart(void);
/* It ends at once. */
void fork_reap(long pid);

/* As vfork, but no function call: see zygote.c. Without a signal at its end: the guest's handler for SIGCHLD
 * has nothing to do with it, and wait() does not find it. */
static inline __attribute__((always_inline)) long fork_raw(void)
{
    long r;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(SYS_clone), "D"((long)(CLONE_VM | CLONE_VFORK)), "S"(0L), "d"(0L),
                       "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long nr __asm__("x8") = SYS_clone;
    register long a0 __asm__("x0") = CLONE_VM | CLONE_VFORK;
    register long a1 __asm__("x1") = 0;
    register long a2 __asm__("x2") = 0;
    register long a3 __asm__("x3") = 0;
    register long a4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(a0) : "r"(nr), "r"(a1), "r"(a2), "r"(a3), "r"(a4) : "memory");
    r = a0;
#else
#error "retort does not know this processor yet"
#endif
    return r;
}
