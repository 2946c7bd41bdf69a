/* steps: the set-up of a box as named steps, so that a failure has a name.
 *
 * Every step of the keeper and of both halves of a box has a name in one table. A failure says which
 * step, and the RETORT_FAULT environment variable makes any one of them fail on purpose: it can only
 * ever make us fail closed, so it is honoured in every build, and the tests walk over all the names.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct step {
    const char *name;
    int (*run)(void *ctx, struct err *e);
};

/* Run them in order and stop at the first that fails; *ret_failed is then its name. */
int steps_run(const struct step *steps, unsigned n, void *ctx, const char **ret_failed,
              struct err *e);
#define STEPS_RUN(steps, ctx, ret_failed, e)                                                       \
    steps_run(steps, sizeof(steps) / sizeof(*(steps)), ctx, ret_failed, e)

/* For steps that are not in a list: -1 when this one is to fail on purpose. */
int step_fails(const char *name, struct err *e);

/* The step that is to fail on purpose, NULL for none. Set once, before anything. The name is copied: it comes from
 * an environment that the keeper forgets. */
void steps_inject(const char *name);

/* All the names there are, in order: the keeper's, init's, the kernel process's. NULL at the end. */
const char *steps_name(unsigned i);
/* The same for those that only a branch takes. */
const char *steps_branch_name(unsigned i);
/* Steps that an ordinary user's retort does not take. */
bool steps_root_only(const char *name);
/* What a person can do when this step fails; NULL where nothing special is known. */
const char *steps_remedy(const char *name);
