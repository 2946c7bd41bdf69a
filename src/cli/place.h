/* place: where a verb's boxes are: on this host, or on a server (--server). */
#pragma once

#include "base/err.h"
#include "guest/address.h"
#include "cli/options.h"
#include "guest/owner.h"
#include "keeper/keeper.h"

struct place {
    bool remote;
    struct environment env; /* here */
    struct address address; /* there */
    struct wish wish;
};

/* From the command line. What is wrong with it is said in the error. idle_s is after how many seconds a server
 * may end a session that its client has forgotten; 0: it decides. */
int place_find(struct place *ret, const struct options *o, unsigned idle_s, struct err *e);
void place_done(struct place *p);

/* From here on owner_stop must be called. */
int place_start(const struct place *p, struct owner *ret, const struct options *o, struct err *e);
