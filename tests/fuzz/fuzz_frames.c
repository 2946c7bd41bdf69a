/* What a box may write into its channel and its pipes, in any pieces, before, during and after a
 * cell. Whatever comes: no crash, and every cell becomes valid JSON.
 *
 * The input is a list of steps: a byte that says what, a byte that says how much, and the bytes. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "fake.h"
#include "session/cell_json.h"
#include "session/summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum step { SAY, SAY_RAW, PRINT, COMPLAIN, RUN, INTERRUPT, DIE, ANSWER, END, VARIABLES, N_STEPS };

static void say(struct fake *f, const uint8_t *data, size_t len, bool framed)
{
    cleanup_buf struct buf b = {0};

    if (f->stream < 0)
        return;
    if (framed && len > 0) {
        /* a frame of a right length, so that its fields are reached: the type is the first byte */
        frame_begin(&b, data[0]);
        buf_add(&b, data + 1, len - 1);
        frame_seal(&b);
    } else {
        buf_add(&b, data, len);
    }
    ssize_t n = write(f->stream, b.data, b.len);
    (void)n;
}

static void take(struct fake *f, unsigned step, const uint8_t *data, size_t len)
{
    struct frame heard;
    struct err e;
    ssize_t n;

    switch (step) {
    case SAY:
    case SAY_RAW:
        say(f, data, len, step == SAY);
        break;
    case PRINT:
        n = write(f->out, data, len);
        (void)n;
        break;
    case COMPLAIN:
        n = write(f->err, data, len);
        (void)n;
        break;
    case RUN:
        session_run(f->session, (const char *)data, len, 0, &e);
        break;
    case INTERRUPT:
        session_interrupt(f->session);
        break;
    case DIE:
        fake_died(f, len ? data[0] : SIGKILL, len > 1);
        break;
    case ANSWER:
        fake_init_answers(f);
        break;
    case VARIABLES:
        session_variables(f->session, 0, &e);
        break;
    case END:
        fd_close(&f->stream);
        break;
    }
    fake_turn(f);
    if (f->stream >= 0)
        while (fake_heard(f, &heard))
            ;
}

static void check_cell(struct fake *f)
{
    if (!f->cell)
        return;
    json_decref(cell_variables_json(f->cell));
    json_t *j = cell_json(f->cell, SUMMARY_DEFAULT);
    char *text = json_dumps(j, CELL_JSON_FLAGS | JSON_ENSURE_ASCII);
    assert_that(text);
    free(text);
    json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fake base, f;
    struct limits l;

    /* One vessel for all inputs: making it takes longer than what is tested. */
    if (!base.vessel) {
        signal(SIGPIPE, SIG_IGN);
        fake_start(&base, NULL);
        fake_keeper_rests(&base);
    }
    limits_default(&l);
    l.output = 300;
    fake_join(&f, &base, &l, METER_NONE);
    fd_set_nonblock(f.stream);
    fd_set_nonblock(f.out);
    fd_set_nonblock(f.err);
    while (size >= 2) {
        unsigned step = data[0] % N_STEPS;
        size_t len = data[1];
        data += 2;
        size -= 2;
        len = len < size ? len : size;
        take(&f, step, data, len);
        data += len;
        size -= len;
    }
    if (session_busy(f.session)) {
        fake_died(&f, SIGKILL, false);
        fake_init_answers(&f);
        assert_that(!session_busy(f.session)); /* every cell ends */
    }
    check_cell(&f);
    fake_part(&f);
    fake_keeper_rests(&base);
    return 0;
}
