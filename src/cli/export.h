/* export: writing what a guest made into a directory of the user's.
 *
 * Names and contents are the guest's, so both are hostile. Names are taken apart and walked down
 * from the directory's descriptor without following any symlink; nothing but directories and
 * regular files is made; a file appears whole or not at all; and the sum of bytes is bounded,
 * because a sparse file can claim any size. Hidden names (.git/config, .bashrc) mean something to
 * other programs, so they go only into a directory that was empty when we came.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct export
{
    int fd;        /* the directory; -1: closed */
    char *name;    /* as the user wrote it */
    bool fresh;    /* it was empty or new */
    uint64_t left; /* bytes that may still be written */
};

/* Open the directory and make it where it is missing. At most `bound` bytes will be written. */
int export_open(struct export *x, const char *dir, uint64_t bound, struct err *e);
/* From now on, at most so many. */
void export_bound(struct export *x, uint64_t bound);
void export_close(struct export *x);

/* Write what can be read from fd, a regular file, as `path` beneath the directory. An older file of
 * that name is replaced. */
int export_file(struct export *x, const char *path, int fd, uint64_t *ret_size, struct err *e);

/* Write a picture as figure-N.EXT with the first free N from *number on, which it returns; nothing
 * is ever replaced. */
int export_figure(struct export *x, unsigned *number, const char *extension, const char *data,
                  size_t len, struct err *e);
