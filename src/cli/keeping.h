/* keeping: the environments and the keeper of a gate; what `serve` and `mcp` have in common. */
#pragma once

#include "gate/config.h"
#include "keeper/keeper.h"
#include "session/session.h"

struct keeping {
    struct environment environments[CONFIG_LIST];
    unsigned n_environments;
    struct keeper keeper;
    struct vessel *vessel;
};

/* Look for what the settings name. keeping_done in either case. */
int keeping_load(struct keeping *k, const struct config *c, struct err *e);
int keeping_start(struct keeping *k, const struct config *c, struct err *e);
/* The names of the environments, in the keeper's order. */
void keeping_name(const struct keeping *k, const char *ret[CONFIG_LIST + 1]);
/* End the keeper and all that is below it; also right where it was never started. */
void keeping_stop(struct keeping *k);
void keeping_done(struct keeping *k);
