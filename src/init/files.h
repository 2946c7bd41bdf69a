/* files: the workspace, by paths that cannot lead out of it. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/path.h"

#define FILES_PATH (PATH_LONGEST + 1)

/* Open the workspace, which is at `path`, once. */
int files_init(const char *path, struct err *e);
int files_root(void);

/* A clear answer to a path that leads nowhere, before anything is done for it. */
int files_check(const char *path, struct err *e);

/* A read-only descriptor of a regular file. */
int files_open(const char *path, struct err *e);

/* A descriptor to write a regular file by, which keeps its inode: whoever has it open sees what is written. */
int files_open_to_write(const char *path, struct err *e);

/* What has this name now, a link itself. 0, or an errno. */
int files_stat(const char *path, struct stat *ret);

/* The directory that holds `path`, made where it is missing, and the last component's name. */
int files_parent(const char *path, const char **ret_name, struct err *e);

/* Remove what has this name: a link itself and not what it points to, a directory with all that is in
 * it. What fails half-way leaves the rest. */
int files_delete(const char *path, struct err *e);

/* Everything in the box that can be written, as far as it goes. */
void files_delete_all(void);

/* What is used: bytes and inodes. */
void files_space(uint64_t *ret_bytes, uint64_t *ret_files);
