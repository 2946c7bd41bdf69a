/* picture: see picture.h. */
#include "term/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beside.h"
#include "base/clock.h"
#include "base/fd.h"

#define PATIENCE_MS 4000

/* The picture as a file without a name, to be read from its beginning. */
static int put_in_memory(const void *data, size_t len, int *ret_fd, struct err *e)
{
    cleanup_fd int fd = memfd_create("picture", MFD_CLOEXEC);

    if (fd < 0 || fd_write_all(fd, data, len) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_set(e, errno, "cannot put the picture into memory");
    *ret_fd = fd_steal(&fd);
    return 0;
}

static int spawn(const char *program, char *const argv[], int in, int out, pid_t *ret,
                 struct err *e)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char *environment[] = {NULL}; /* there are keys in ours */

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int failed = posix_spawn(ret, program, &files, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return failed ? err_set(e, failed, "cannot start %s", program) : 0;
}

/* All that it writes until it is done, within the bounds. */
static int collect(int fd, struct buf *drawn, struct err *e)
{
    int64_t until = clock_now_ms() + PATIENCE_MS;

    for (;;) {
        int64_t left = until - clock_now_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (left <= 0)
            return err_set(e, 0, "drawing it takes too long");
        if (poll(&p, 1, (int)left) <= 0)
            continue;
        ssize_t n = read(fd, buf_room(drawn, 65536), 65536);
        if (n < 0 && errno != EINTR)
            return err_set(e, errno, "cannot read the drawing");
        if (n == 0)
            return 0;
        drawn->len += n > 0 ? (size_t)n : 0;
        if (drawn->len > PICTURE_DRAWN_MAX)
            return err_set(e, 0, "its drawing is too large");
    }
}

static int end(pid_t pid, bool kill_it, struct err *e)
{
    int status = 0;

    if (kill_it)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        return err_set(e, 0, "it could not be decoded within its limits");
    return WEXITSTATUS(status) == 0 ? 0 : err_set(e, 0, "it cannot be decoded");
}

static int run(const struct term *t, unsigned columns, unsigned rows, int in, struct buf *drawn,
               struct err *e)
{
    static const char *const kinds[] = {"none", "blocks", "sixel", "kitty"};
    char program[PATH_MAX], numbers[5][16];
    char *argv[] = {"retort-draw", (char *)kinds[t->pictures],
                    numbers[0],    numbers[1],
                    numbers[2],    numbers[3],
                    numbers[4],    NULL};
    cleanup_fd int from = -1, to = -1;
    int ends[2];
    pid_t pid;

    if (beside_find("retort-draw", "retort-draw", program, sizeof(program), e) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, errno, "cannot make a pipe");
    from = ends[0];
    to = ends[1];
    unsigned values[] = {(unsigned)t->depth, columns, rows, t->cell_width, t->cell_height};
    for (unsigned i = 0; i < 5; i++)
        snprintf(numbers[i], sizeof(numbers[i]), "%u", values[i]);
    if (spawn(program, argv, in, to, &pid, e) < 0)
        return -1;
    fd_close(&to);
    int r = collect(from, drawn, e);
    struct err ended;
    if (end(pid, r < 0, r < 0 ? &ended : e) < 0)
        return -1;
    return r;
}

static void add_lines(const struct buf *drawn, const char *prefix, struct buf *out)
{
    for (const char *at = drawn->data, *stop = at + drawn->len; at < stop;) {
        const char *newline = memchr(at, '\n', (size_t)(stop - at));
        const char *to = newline ? newline : stop;
        buf_add_text(out, prefix);
        buf_add(out, at, (size_t)(to - at));
        buf_add_text(out, "\033[0m\n");
        at = newline ? newline + 1 : stop;
    }
}

int picture_draw(const struct term *t, unsigned columns, unsigned rows, const char *prefix,
                 const void *data, size_t len, struct buf *out, struct err *e)
{
    cleanup_fd int in = -1;
    cleanup_buf struct buf drawn = {0};

    if (t->pictures == PICTURES_NONE || columns == 0 || rows == 0)
        return err_set(e, 0, "the terminal shows no pictures");
    if (len > PICTURE_BYTES_MAX)
        return err_set(e, 0, "it is too large");
    if (put_in_memory(data, len, &in, e) < 0 || run(t, columns, rows, in, &drawn, e) < 0)
        return -1;
    if (!drawn_check(t->pictures, drawn.data, drawn.len, columns, rows))
        return err_set(e, 0, "its drawing is not one");
    if (t->pictures == PICTURES_BLOCKS) {
        add_lines(&drawn, prefix, out);
        return 0;
    }
    buf_add_text(out, prefix);
    buf_add(out, drawn.data, drawn.len);
    /* Terminals differ in whether the cursor is below the picture then, or beside its last line. */
    buf_add_text(out, out->data[out->len - 1] == '\n' ? "\r" : "\r\n");
    return 0;
}
