/* house: a keeper with one environment and its vessel, for tests that use one session after the other. */
#pragma once

#include <stdbool.h>

#include "session/session.h"

extern struct vessel *vessel;
extern struct session *session;

/* Before and after all tests. */
int house_open(void **state);
int house_close(void **state);

/* A session with the standard limits but for the number of files; `done` gets its cells. */
void house_session(uint64_t files, void (*done)(void *ctx, struct session *s, struct cell *c));
void house_wait(const bool *flag);
