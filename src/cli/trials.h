/* trials: what doctor does inside boxes to see whether each layer holds. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "guest/owner.h"

struct trial {
    const char *name;          /* a short noun */
    const char *claim;         /* what holds when it held */
    const char *limit, *value; /* the box's one special limit, or NULL */
    const char *code;     /* prints "held: …" or "broke: …", unless a limit should end it */
    enum limit_kind kind; /* the limit that should end or change it */
    const char *remedy;
    bool essential;    /* doctor fails without it */
    bool needs_cgroup; /* not tried where there are none */
};

/* NULL after the last. */
const struct trial *trials_get(unsigned i);

enum trial_result { TRIAL_HELD, TRIAL_BROKE, TRIAL_FAILED /* it could not be tried */ };

/* Make a box, try it, end the box. The detail is one line. -1: a signal says to stop, or the keeper
 * is gone. */
int trials_run(const struct trial *t, struct owner *o, enum trial_result *ret, char *ret_detail,
               unsigned size, struct err *e);
