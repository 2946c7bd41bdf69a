/* branch: the sessions of a repl: the first one, and those that left it, or another, and go on by themselves.
 *
 *     %fork          a new one that begins as this one is now, and go on in it
 *     %fork N        the same, as this one was after cell N
 *     %branches      which there are
 *     %branch K      go on in that one
 *
 * Each of these gets the rest of its line, and returns as command_do does, but leaves it to that to say what is
 * wrong.
 */
#pragma once

#include "cli/repl.h"

int branch_fork(struct repl *r, const char *rest, struct err *e);
int branch_list(struct repl *r, const char *rest, struct err *e);
int branch_go(struct repl *r, const char *rest, struct err *e);

/* The same without words. */
/* Make one of the state after cell n, and go there. 0; a set of enum turn that said to stop; or -1, and nothing has
 * happened: with ENOENT where that state is not kept. */
int branch_make(struct repl *r, uint32_t n, struct err *e);
/* Go there. -1: there is no such branch. */
int branch_enter(struct repl *r, uint32_t number, struct err *e);
unsigned branch_number(const struct repl *r, const struct branch *b);
/* The end of all of them. */
void branch_close_all(struct repl *r);
