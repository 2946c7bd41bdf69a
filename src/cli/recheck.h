/* recheck: a notebook's cells once more, in a fresh box, and whether the same comes out.
 *
 * The report:
 *
 *     {"cells":[{"cell":1, "code":"its first line",
 *                "status":"same|differs|unrecorded|undone|not_run",
 *                "differences":[…], "remarks":[…]}, …],          as compare.h has them
 *      "same":1, "differs":0, "unrecorded":0, "undone":0, "not_run":0,       how many of each
 *      "unfounded":["45 %", …],                                numbers of the answers that no output has
 *      "verified":true}                                        nothing differs, all ran, and all are founded
 *
 * "unrecorded" is a cell that has neither outputs nor a number: it is run, and there is nothing to compare. "undone" was
 * taken back when it failed, so it is left out. "not_run": the interpreter was gone before.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/limits.h"
#include "cli/uploads.h"
#include "guest/outlet.h"
#include "guest/owner.h"

struct recheck {
    struct owner *owner;
    const struct limits *limits;
    struct uploads *uploads; /* open; they are read again */
    const json_t *cells;     /* code cells of a notebook (notebook_load.h, notebook_code_json) */
    const json_t *answers;   /* texts */
    const json_t *given;     /* texts that a number may come from as well: the questions */
    /* A cell of the report, as soon as it is known; NULL: nobody waits for it. */
    void (*cell)(void *ctx, const json_t *cell);
    void *ctx;
};

/* 0; a set of enum turn that said to stop; or -1. */
int recheck(const struct recheck *r, json_t **ret, struct err *e);

/* For a person, on stdout (fd 1) or stderr (2): a cell, and what there is to say at the end. */
void recheck_show_cell(struct outlet *out, int fd, const json_t *cell);
void recheck_show_end(struct outlet *out, int fd, const json_t *report);
