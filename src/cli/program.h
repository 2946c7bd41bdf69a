/* program: the text to run, from the command line, a file or standard input. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define PROGRAM_MAX (16u << 20)

/* Read a file whole ("-": standard input), without a byte order mark, and see that it is UTF-8. */
int program_read(const char *path, struct buf *ret, struct err *e);
/* The same checks for text that is there already. `name` is for the message. */
int program_check(const char *name, struct buf *text, struct err *e);
