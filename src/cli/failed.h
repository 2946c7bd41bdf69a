/* failed: what a verb says where retort itself could not do its work, and how it ends where it was stopped. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Say that retort itself failed, with the remedy where the failing step has one. Returns
 * EXIT_RETORT_FAILED. */
int owner_failed(const struct err *e);

/* The exit status of a verb that a set of enum turn ends; 0 where it does not. */
int turn_status(int turn);

/* The name of the set-up step in an error's text ("… step NAME: …"), or NULL. `ret` holds it. */
const char *failed_step(const struct err *e, char *ret, size_t size);
