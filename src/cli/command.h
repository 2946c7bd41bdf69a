/* command: lines that a repl does itself, and does not run: see undo.h and branch.h. */
#pragma once

#include "cli/repl.h"

/* Is this line one of them, right or wrong? */
bool command_is(const char *line);
/* Do it, and say so. What is wrong with it is said too. 0; a set of enum turn; or -1 where retort failed. */
int command_do(struct repl *r, const char *line, struct err *e);

/* For what does one, and gets the rest of its line: is that a number, and which? */
bool command_number(const char *rest, uint32_t *ret);
