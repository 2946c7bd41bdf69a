/* repl: what the interactive repl and the one that speaks JSON share. */
#pragma once

#include "cli/export.h"
#include "guest/guest.h"
#include "cli/options.h"
#include "guest/owner.h"
#include "cli/place.h"
#include "cli/show.h"

#define BRANCHES_MAX 16 /* half of what a keeper of ours has boxes for */

struct branch {
    struct guest guest; /* does not move: its session knows where it is */
    unsigned of;        /* the number of the one that it has left; 0: none */
    uint32_t after;     /* that one's cell */
};

struct repl {
    struct options options;
    const char *out_dir;
    struct export export;
    struct place place;
    struct owner owner;
    struct branch branches[BRANCHES_MAX]; /* numbers count from 1 */
    unsigned n_branches;
    struct branch *branch; /* where it is */
    struct show show;
    char label[32]; /* "Out[3]: " */
};

/* A fresh session in place of the branch's, which has ended. Returns 0, a set of enum turn, or -1. */
int repl_fresh(struct repl *r, struct err *e);

/* With the owner started: read requests until the end. Returns the exit status, or -1 where retort
 * failed. */
int repl_json(struct repl *r, struct err *e);
