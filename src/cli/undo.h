/* undo: what a repl can do with the states of its session that are kept.
 *
 *     %checkpoints   which there are
 *     %undo          what it was before the last cell that changed something
 *     %undo N        what it was after cell N
 */
#pragma once

#include "cli/repl.h"

/* Is this line one of them, right or wrong? */
bool undo_is_command(const char *line);
/* Do it, and say so. What is wrong with it is said too. 0; a set of enum turn; or -1 where retort failed. */
int undo_command(struct repl *r, const char *line, struct err *e);
