/* workspace: whether its owner can see by himself that a cell has left no file. Then init need not be asked, and a
 * cell is over when its code is. */
#pragma once

#include <stdbool.h>

struct workspace {
    int fd; /* of its root, for nothing but counting what is in it; -1: init is asked always */
    bool empty_before; /* no file is there, as far as has been told */
    bool empty_asked;  /* nor was one when init was asked last */
};

/* Takes the descriptor. init knew of files, or not, before any user code ran: of a branch some has run by now. */
void workspace_init(struct workspace *w, int fd, bool has_files);
void workspace_done(struct workspace *w);
/* There was no file, and there is none: no change that could be told. */
bool workspace_still_empty(const struct workspace *w);
/* init is about to be asked what has changed; and has answered, with or without files that are there now. */
void workspace_asked(struct workspace *w);
void workspace_told(struct workspace *w, bool files);
/* Somebody else than a cell puts files into it. */
void workspace_fills(struct workspace *w);
