/* fd: descriptors that close themselves, and reads and writes that finish. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Close *fd if it is open and set it to -1. Keeps errno. */
void fd_close(int *fd);

#define cleanup_fd __attribute__((cleanup(fd_close)))

/* Give the descriptor away: *fd becomes -1. */
int fd_steal(int *fd);

/* Write all of it, also over EINTR and short writes. 0, or -1 with errno. */
int fd_write_all(int fd, const void *data, size_t len);

/* Read up to len bytes until the end of the file. The count, or -1 with errno. */
ssize_t fd_read_full(int fd, void *data, size_t len);

/* Write a short text to a file below dirfd (a kernel's control file). */
int fd_put_text(int dirfd, const char *path, const char *text, struct err *e);

/* Read a small file whole as a string. -1 where it does not fit. */
int fd_get_text(int dirfd, const char *path, char *ret, size_t size, struct err *e);

/* Make the directory, and those above it that are missing. `path` is not empty. */
int fd_make_dirs(const char *path, mode_t mode, struct err *e);

int fd_set_nonblock(int fd);

/* write() to a pipe without SIGPIPE, which a library may not ignore for its process. */
ssize_t fd_write_quietly(int fd, const void *data, size_t len);

/* Put from[0…n) at the numbers first, first+1, …, whatever numbers they have now: all of them are
 * taken out of the way first, since one's goal may be another's place. The first `inherited` of them
 * survive an exec. The places of entries of -1 are empty afterwards. The sources stay open: close_range from
 * first+n follows. 0, or -1 with errno. */
int fd_place(const int *from, unsigned n, int first, unsigned inherited);
