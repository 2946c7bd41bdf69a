/* show: a cell's outputs and its end, for a person.
 *
 * Text and results go to stdout, the guest's stderr and tracebacks to stderr, and what retort has
 * to say about them is a line "retort: …" on stderr.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/export.h"
#include "guest/guest.h"
#include "guest/outlet.h"
#include "session/session.h"

struct show {
    struct outlet *out;
    const struct limits *limits; /* of the session, for its sentences */
    struct export *export;       /* where pictures and files go; NULL: nowhere */
    bool quiet;               /* with --json: nothing is printed, pictures are saved all the same */
    const char *result_label; /* before a result, as "Out[3]: "; "" for none */
    unsigned figures;         /* seen so far */
    bool failed;              /* something could not be saved */
    struct guest_view view;   /* for guest_open */
};

void show_init(struct show *s, struct outlet *out, const struct limits *limits,
               struct export *export, bool quiet);

/* The end of a cell: its traceback, the limit that ended it, what was dropped. */
void show_end(struct show *s, const struct cell *c);

/* Copy the files that a cell made or changed out of the workspace, and say so. 0, or a set of enum turn that
 * said to stop. */
int show_files(struct show *s, struct guest *g, const struct cell *c);
