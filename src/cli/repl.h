/* repl: what the interactive repl and the one that speaks JSON share. */
#pragma once

#include "cli/export.h"
#include "cli/guest.h"
#include "cli/options.h"
#include "cli/owner.h"
#include "cli/place.h"
#include "cli/show.h"

struct repl {
    struct options options;
    const char *out_dir;
    struct export export;
    struct place place;
    struct owner owner;
    struct guest guest;
    struct show show;
    char label[32]; /* "Out[3]: " */
};

/* A fresh session where there is none that lives. Returns 0, a set of enum turn, or -1. */
int repl_fresh(struct repl *r, struct err *e);

/* With the owner started: read requests until the end. Returns the exit status, or -1 where retort
 * failed. */
int repl_json(struct repl *r, struct err *e);
