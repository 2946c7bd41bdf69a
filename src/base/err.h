/* err: one failure of the world around us, as a sentence for a person.
 *
 * Lives on the caller's stack and is passed as the last parameter. The function that sees the
 * failure sets it, each layer that knows more wraps it once ("mount /proc: …"). Our own bugs are
 * not errors: they abort. What a guest does wrong is not an error either: it is a result.
 */
#pragma once

#include <stdarg.h>

struct err {
    int code; /* an errno value, or 0 where the kernel gave none */
    char text[512];
};

/* Say what failed. `code` is an errno value, given explicitly because errno goes stale; its text is
 * appended when it is not 0. Returns -1, so that a function can `return err_set(…)`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "context: " before what is there. Returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A bug of ours: say where, and abort. */
_Noreturn void bug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define assert_that(cond)                                                                          \
    do {                                                                                           \
        if (!(cond))                                                                               \
            bug("%s:%d: %s does not hold", __FILE__, __LINE__, #cond);                             \
    } while (0)
