/* undo: what a repl can do with the states of its session that are kept.
 *
 *     %checkpoints   which there are
 *     %undo          what it was before the last cell that changed something
 *     %undo N        what it was after cell N
 *
 * Each gets the rest of its line, and returns as command_do does, but leaves it to that to say what is wrong.
 */
#pragma once

#include "cli/repl.h"

int undo_list(struct repl *r, const char *rest, struct err *e);
int undo_back(struct repl *r, const char *rest, struct err *e);
