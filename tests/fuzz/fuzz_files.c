/* What a box's init may answer, with and without descriptors, asked or not. No crash, no descriptor
 * left behind, and no path that leaves the workspace.
 *
 * The input is a list of messages: a byte of flags (1: with a descriptor, 2: a cell's end comes
 * first, 4: the owner asks for everything anew first, 8: he cancels his list at its next entry, 16: he
 * closes the session at his next answer, 32: the interpreter dies first, 64: with the four pipes of another),
 * a byte of length, and the bytes. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "fake.h"
#include "session/cell_json.h"
#include "session/summary.h"
#include "session/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int lowest(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

static void check_path(const char *path)
{
    assert_that(path[0] && path[0] != '/' && strncmp(path, "../", 3) != 0);
    assert_that(!strstr(path, "/../") && strcmp(path, "..") != 0);
}

static void check_cell(const struct cell *c)
{
    for (unsigned i = 0; i < c->n_files; i++)
        check_path(c->files[i].path);
    json_t *j = cell_json(c, SUMMARY_DEFAULT);
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

/* ---- an owner with requests ---- */

static struct {
    struct fake *fake;
    struct file_request *list;
    unsigned waiting; /* for answers */
    char last[256];
    bool cancel, close;
} owner;

static void on_answer(void *ctx, const struct file_answer *a)
{
    int fd = a->fd;
    (void)ctx;

    assert_that(owner.waiting > 0);
    owner.waiting--;
    assert_that(!a->e || a->e->code);
    fd_close(&fd);
    if (owner.close) {
        session_close(owner.fake->session);
        owner.fake->session = NULL;
        owner.waiting = 0;
    }
    owner.close = false;
}

static void on_list_answer(void *ctx, const struct file_answer *a)
{
    owner.list = NULL;
    on_answer(ctx, a);
}

static void on_entry(void *ctx, const char *path, uint64_t size, uint64_t mtime_ns)
{
    (void)ctx;
    (void)size;
    (void)mtime_ns;
    check_path(path);
    assert_that(strcmp(owner.last, path) < 0);
    snprintf(owner.last, sizeof(owner.last), "%s", path);
    if (owner.cancel) {
        session_file_cancel(owner.list);
        owner.list = NULL;
        owner.waiting--;
    }
    owner.cancel = false;
}

static void ask_everything(struct fake *f)
{
    struct err e;
    int pipe = -1;

    owner.waiting += session_ask_get(f->session, "a", on_answer, NULL, &e) != NULL;
    owner.waiting += session_ask_space(f->session, on_answer, NULL, &e) != NULL;
    owner.waiting += session_ask_delete(f->session, "a", on_answer, NULL, &e) != NULL;
    struct file_request *put = session_ask_put(f->session, "a", &pipe, on_answer, NULL, &e);
    owner.waiting += put != NULL;
    if (put)
        session_put_all(put, 0);
    fd_close(&pipe);
    if (owner.list)
        return;
    owner.last[0] = '\0';
    owner.list = session_ask_list(f->session, on_entry, on_list_answer, NULL, &e);
    owner.waiting += owner.list != NULL;
}

static void die(struct fake *f)
{
    struct err e;

    session_run(f->session, "1", 1, 0, &e);
    fake_died(f, SIGSEGV, false);
}

static void send_answers(struct fake *f, const uint8_t *data, size_t size)
{
    cleanup_fd int file = memfd_create("file", MFD_CLOEXEC);
    int pipes[4] = {-1, -1, -1, -1}; /* kept open: what is written to them goes somewhere */
    struct err e;

    while (size >= 2 && f->session) {
        cleanup_buf struct buf b = {0};
        unsigned flags = data[0];
        size_t len = data[1];
        data += 2;
        size -= 2;
        len = len < size ? len : size;
        if (flags & 2)
            reach_the_end(f);
        if (flags & 4)
            ask_everything(f);
        owner.cancel |= (flags & 8) != 0;
        owner.close |= (flags & 16) != 0;
        if (flags & 32)
            die(f);
        if (!f->session)
            break;
        if ((flags & 64) && pipes[0] < 0)
            fake_successor(f, pipes);
        buf_room(&b, 1);
        buf_add(&b, data, len);
        if ((flags & 64) != 0)
            msg_send(f->files, &b, pipes, 4, &e);
        else
            msg_send(f->files, &b, &file, flags & 1, &e);
        fake_turn(f);
        data += len;
        size -= len;
    }
    for (unsigned i = 0; i < 4; i++)
        fd_close(&pipes[i]);
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
    memset(&owner, 0, sizeof(owner));
    owner.fake = &f;
    reach_the_end(&f);
    ask_everything(&f);
    send_answers(&f, data, size);
    owner.cancel = owner.close = false;
    fake_init_answers(&f);
    assert_that(owner.waiting == 0);
    if (f.session && session_busy(f.session)) {
        fd_close(&f.files);
        fake_turn(&f);
        fake_died(&f, SIGKILL, false);
    }
    assert_that(!f.session || !session_busy(f.session));
    if (f.cell)
        check_cell(f.cell);
    fake_part(&f);
    fake_keeper_rests(&base);
    assert_that(lowest() == before);
    return 0;
}
