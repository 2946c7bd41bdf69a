/* files: the workspace, by paths that cannot lead out of it. */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define FILES_PATH 4096

struct file_facts {
    uint64_t size, mtime_ns;
};

/* Open the workspace, once, when the root stands. */
int files_init(struct err *e);
int files_root(void);

/* A read-only descriptor of a regular file. */
int files_open(const char *path, struct file_facts *ret, struct err *e);

/* The directory that holds `path`, made where it is missing, and the last component's name. */
int files_parent(const char *path, const char **ret_name, struct err *e);

/* What is used: bytes and inodes. */
void files_space(uint64_t *ret_bytes, uint64_t *ret_files);
