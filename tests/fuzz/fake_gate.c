/* fake_gate: see fake_gate.h. */
#include "fake_gate.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/fields.h"
#include "wire/msg.h"
#include "wire/proto.h"

struct gate gate;
static int keeper; /* the other side */

void fake_check(int result, const struct err *e)
{
    if (result < 0)
        bug("%s", e->text);
}

struct vessel *fake_vessel(void)
{
    struct err e;
    int pair[2];

    fake_check(msg_pair(pair, &e), &e);
    keeper = pair[1];
    fd_set_nonblock(keeper);
    struct vessel *v = vessel_new(pair[0], &e);
    fake_check(v ? 0 : -1, &e);
    return v;
}

/* A box: channels whose other ends nobody holds but us, so that nothing is ever answered. */
static void create(uint32_t request)
{
    static int held[64];
    static unsigned n_held;
    static uint32_t box;
    cleanup_buf struct buf b = {0};
    int ends[5][2], fds[5];
    struct err e;

    for (int i = 0; i < 5; i++) {
        if (socketpair(AF_UNIX, (i == 4 ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0,
                       ends[i]) < 0)
            bug("no socket pair");
        fds[i] = ends[i][0];
        int *place = &held[n_held++ % 64];
        if (*place)
            close(*place);
        *place = ends[i][1];
    }
    msg_begin(&b, KEEPER_CREATED);
    fields_put_u32(&b, request);
    fields_put_u32(&b, ++box);
    fields_put_u8(&b, 0);
    fields_put_u8(&b, METER_NONE);
    fields_put_u8(&b, false);
    fake_check(msg_send(keeper, &b, fds, 5, &e), &e);
    for (int i = 0; i < 5; i++)
        close(fds[i]);
}

static void destroyed(uint32_t box)
{
    cleanup_buf struct buf b = {0};
    struct err e;

    msg_begin(&b, KEEPER_DESTROYED);
    fields_put_u32(&b, box);
    fake_check(msg_send(keeper, &b, NULL, 0, &e), &e);
}

static bool keeper_answers(void)
{
    static struct msg m;
    struct fields f;
    struct err e;

    if (msg_recv(keeper, &m, &e) <= 0)
        return false;
    fields_init(&f, m.data, m.len);
    uint32_t first = fields_get_u32(&f);
    if (m.type == KEEPER_CREATE)
        create(first);
    else if (m.type == KEEPER_DESTROY)
        destroyed(first);
    msg_done(&m);
    return true;
}

void fake_turns(unsigned n)
{
    struct err e;

    for (unsigned i = 0; i < n; i++) {
        fake_check(gate_turn(&gate, 0, &e), &e);
        while (keeper_answers())
            i = 0;
    }
}
