/* folder: the files of a folder that a person offers to every new session.
 *
 * All of them are opened at once, while we still have the person's rights; afterwards nobody looks for a path again.
 * Links are not followed, hidden names are left out, and so is what is more than there may be.
 */
#pragma once

#include "base/err.h"
#include "gate/gate.h"

#define FOLDER_FILES_MAX 256

struct folder {
    struct gate_file files[FOLDER_FILES_MAX];
    unsigned n;
    unsigned left_out; /* hidden, no regular file, unreadable, or one too many */
};

/* Open what is below this directory. */
int folder_open(struct folder *f, const char *dir, struct err *e);
void folder_done(struct folder *f);
