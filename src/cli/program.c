/* program: see program.h. */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "session/utf8.h"

int program_check(const char *name, struct buf *text, struct err *e)
{
    if (text->len >= 3 && memcmp(text->data, "\xef\xbb\xbf", 3) == 0)
        buf_drop(text, 3);
    if (text->len > PROGRAM_MAX)
        return err_set(e, 0, "%s is longer than a program may be (16 MiB): pass data as files",
                       name);
    if (utf8_valid(text->data, text->len) != text->len)
        return err_set(e, 0, "%s is not UTF-8 text: convert it first, as with \"iconv -t UTF-8\"",
                       name);
    return 0;
}

int program_read(const char *path, struct buf *ret, struct err *e)
{
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    cleanup_fd int opened = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    int fd = is_stdin ? STDIN_FILENO : opened;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, errno, "cannot open %s", name);
    if (S_ISDIR(st.st_mode))
        return err_set(e, 0, "%s is a directory: give the program's file", name);
    while (ret->len <= PROGRAM_MAX + 3) {
        ssize_t n = read(fd, buf_room(ret, 64 << 10), 64 << 10);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(e, errno, "cannot read %s", name);
        if (n == 0)
            break;
        ret->len += (size_t)n;
    }
    return program_check(name, ret, e);
}
