/* What a box's init may answer, with and without descriptors, asked or not. No crash, no descriptor
 * left behind, and no path that leaves the workspace.
 *
 * The input is a list of messages: a byte of flags (1: with a descriptor, 2: of a cell's end
 * first), a byte of length, and the bytes. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "fake.h"
#include "session/cell_json.h"
#include "session/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int lowest(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

static void check_cell(const struct cell *c)
{
    for (unsigned i = 0; i < c->n_files; i++) {
        const char *path = c->files[i].path;
        assert_that(path[0] && path[0] != '/' && strncmp(path, "../", 3) != 0);
        assert_that(!strstr(path, "/../") && strcmp(path, "..") != 0);
    }
    json_t *j = cell_json(c);
    char *text = json_dumps(j, CELL_JSON_FLAGS);
    assert_that(text);
    free(text);
    json_decref(j);
}

/* Bring a cell to where it waits for init. */
static void reach_the_end(struct fake *f)
{
    struct err e;

    if (session_run(f->session, "1", 1, 0, &e) == 0)
        fake_done(f, DONE_OK);
    fake_turn(f);
}

static void send_answers(struct fake *f, const uint8_t *data, size_t size)
{
    cleanup_fd int file = memfd_create("file", MFD_CLOEXEC);
    struct err e;

    while (size >= 2) {
        cleanup_buf struct buf b = {0};
        unsigned flags = data[0];
        size_t len = data[1];
        data += 2;
        size -= 2;
        len = len < size ? len : size;
        if (flags & 2)
            reach_the_end(f);
        buf_room(&b, 1);
        buf_add(&b, data, len);
        msg_send(f->files, &b, &file, flags & 1, &e);
        fake_turn(f);
        data += len;
        size -= len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fake base, f;

    /* One vessel for all inputs: making it takes longer than what is tested. */
    if (!base.vessel) {
        signal(SIGPIPE, SIG_IGN);
        fake_start(&base, NULL);
        fake_keeper_rests(&base);
    }
    int before = lowest();
    base.vessel->last_req = 0; /* the numbers of requests are the same for every input */
    fake_join(&f, &base, NULL, METER_NONE);
    fd_set_nonblock(f.files);
    fd_set_nonblock(f.stream);
    reach_the_end(&f);
    send_answers(&f, data, size);
    fake_init_answers(&f);
    if (session_busy(f.session)) {
        fd_close(&f.files);
        fake_turn(&f);
        fake_died(&f, SIGKILL, false);
    }
    assert_that(!session_busy(f.session));
    if (f.cell)
        check_cell(f.cell);
    fake_part(&f);
    fake_keeper_rests(&base);
    assert_that(lowest() == before);
    return 0;
}
