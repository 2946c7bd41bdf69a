/* zip: an archive of many files, made piece by piece.
 *
 *     zip_new ──▶ (zip_file ──▶ zip_step … 0)… ──▶ zip_close ──▶ zip_free
 *
 * Each call adds to the buffer of zip_out, which the caller drains in between: what is held is one
 * piece, and the list of names that a zip has at its end. Nothing blocks.
 *
 * The files are a guest's, who may change them while they are read: an entry has the length that was
 * said at its beginning, whatever the file has become. What it has grown by is left out, and where it
 * has shrunk there are zeros.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct zip;

struct zip *zip_new(void);
void zip_free(struct zip *z);

/* Begin an entry. `path` is relative, without "..", and any bytes else: what is not UTF-8, would be a
 * separator or a drive on another system, or a control character, is written as %XX. fd is a regular
 * file, and taken over also when this fails. */
int zip_file(struct zip *z, const char *path, int fd, uint64_t size, uint64_t mtime_ns,
             struct err *e);
/* Read and compress a piece of the entry. 1: there is more of it; 0: it is finished. */
int zip_step(struct zip *z, struct err *e);
/* All entries are finished. */
int zip_close(struct zip *z, struct err *e);

/* What is there to be sent: the caller drops what it has taken. */
struct buf *zip_out(struct zip *z);
