/* workspace: a directory that stands for a box's, with init's rights on it: none but its owner's, also
 * where root runs the test. The test's current directory is in it. */
#pragma once

#include <stddef.h>

void workspace_open(void);
void workspace_close(void);

/* Write a file (made where it is missing), also one in directories that are missing. */
void workspace_write(const char *path, const char *text);
/* Is this what is in the file? */
int workspace_has(const char *path, const char *text);
