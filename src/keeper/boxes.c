/* boxes: requests for boxes, handing them over, and their end. Runs in the keeper.
 *
 * Everything here is a reaction to a message or a death, so that making one box never keeps another
 * waiting. Nothing that a box says is more than "done" or "failed, because": the keeper reads no
 * content.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/state.h"
#include "wire/proto.h"

/* How long after the last request the pool is refilled: later than the cell that the request was
 * made for, sooner than a person's next one. */
#define REFILL_DELAY_MS 4

/* Words of init's that are read on the way to something else: more than a sound one has to say at a time (LENDS, and
 * two for each state), but one that a guest has found a way into must not keep us from the others. */
#define SAID_MOST 256

/* ---- talking to the owner ---- */

void box_tell_failed(struct state *s, uint32_t request, const char *why)
{
    cleanup_buf struct buf m = {0};

    msg_begin(&m, KEEPER_FAILED);
    fields_put_u32(&m, request);
    fields_put_text(&m, why);
    owner_tell(s, &m, NULL, 0);
}

static void tell_died(struct state *s, struct box *b, int status)
{
    cleanup_buf struct buf m = {0};

    msg_begin(&m, KEEPER_DIED);
    fields_put_u32(&m, b->id);
    fields_put_u32(&m, (uint32_t)status);
    fields_put_u8(&m, b->memory_short);
    owner_tell(s, &m, NULL, 0);
}

static void tell_destroyed(struct state *s, struct box *b)
{
    cleanup_buf struct buf m = {0};

    msg_begin(&m, KEEPER_DESTROYED);
    fields_put_u32(&m, b->id);
    owner_tell(s, &m, NULL, 0);
    b->tell_end = false;
}

/* ---- the end ---- */

static void box_unlink(struct state *s, struct box *b)
{
    for (struct box **at = &s->boxes; *at; at = &(*at)->next)
        if (*at == b) {
            *at = b->next;
            return;
        }
}

static void close_owner_ends(struct box *b)
{
    fd_close(&b->cell_out_fd);
    fd_close(&b->cell_in_fd);
    fd_close(&b->stdout_fd);
    fd_close(&b->stderr_fd);
    fd_close(&b->files_fd);
    fd_close(&b->workspace_fd);
    while (b->n_meters > 0)
        fd_close(&b->meters[--b->n_meters]);
}

/* Every process is reaped, so this can fail only for a moment, while the last one's exit is still on its way through
 * the kernel; or, of a branch, where processes of the other box have gone in by the way that was meant for its own. */
static void remove_cgroup(struct state *s, struct box *b)
{
    const struct cgroup_spared nobody = {0};
    struct err ignored;

    for (int tries = 0; b->has_cgroup && tries < 100; tries++) {
        if (cgroup_remove(&s->cgroups, b->id, &ignored) == 0)
            return;
        if (b->parent && tries % 25 == 0)
            cgroup_end_others(&s->cgroups, b->id, &nobody);
        usleep(200);
    }
}

void box_free_when_gone(struct state *s, struct box *b)
{
    /* One with branches is what they lie in, even if its init is dead: then they are about to be. */
    if (b->phase != BOX_ENDING || b->init_pid || b->kernel_pid || b->usher_pid || b->asked_zygote ||
        b->maker_pid || b->branches > 0)
        return;
    remove_cgroup(s, b);
    s->slot_used[b->plan.slot] = false;
    if (!b->tell_end && !s->refill_at_ms)
        s->refill_at_ms =
            clock_now_ms() + REFILL_DELAY_MS; /* it was of the stock, or meant for it */
    if (b->tell_end)
        tell_destroyed(s, b);
    box_unlink(s, b);
    if (b->parent)
        box_branch_gone(s, b->parent);
    free(b);
}

/* Both halves have them, or never will. */
void box_close_far_ends(struct box *b)
{
    fd_close(&b->far.init_setup);
    fd_close(&b->far.kernel_setup);
    fd_close(&b->far.cell_out);
    fd_close(&b->far.cell_in);
    fd_close(&b->far.out);
    fd_close(&b->far.err);
    fd_close(&b->far.files);
    fd_close(&b->far.init_line);
    fd_close(&b->far.kernel_line);
    fd_close(&b->far.handover);
    for (int i = 0; i < BOX_BORN_INTO; i++)
        fd_close(&b->namespaces[i]);
    while (b->n_ways > 0)
        fd_close(&b->ways[--b->n_ways]);
}

/* pid 1 takes its whole namespace along. Not reaped yet, so the pid is still its own. */
static void end_init(struct state *s, struct box *b)
{
    watch_close(s, &b->init_setup);
    if (b->init_pid)
        kill(b->init_pid, SIGKILL);
}

void box_branch_gone(struct state *s, struct box *parent)
{
    parent->branches--;
    if (parent->branches > 0 || parent->phase != BOX_ENDING)
        return;
    end_init(s, parent);
    box_free_when_gone(s, parent);
}

void box_end(struct state *s, struct box *b)
{
    if (b->phase != BOX_ENDING) {
        b->phase = BOX_ENDING;
        fd_close(&b->network_fd);
        fd_close(&b->cgroup_fd);
        fd_close(&b->live_fd);
        watch_close(s, &b->kernel_setup);
        close_owner_ends(b);
        box_close_far_ends(b);
        if (b->usher == USHER_WAITS && !b->asked_zygote)
            zygote_dismiss(s, b);
        if (b->branches > 0) {
            box_linger(s, b);
            if (b->tell_end)
                tell_destroyed(s, b);
        } else {
            end_init(s, b);
        }
    }
    box_free_when_gone(s, b);
}

/* Making it failed: whoever waits hears why. */
void box_fail(struct state *s, struct box *b, const char *why)
{
    if (b->phase == BOX_ENDING)
        return;
    if (b->requested)
        box_tell_failed(s, b->request, why);
    b->requested = false;
    box_end(s, b);
}

void box_fail_step(struct state *s, struct box *b, const char *step, const struct err *e)
{
    char why[700];

    snprintf(why, sizeof(why), "step %s: %s", step, e->text);
    box_fail(s, b, why);
}

/* ---- handing over ---- */

void box_hand_over(struct state *s, struct box *b, bool from_pool)
{
    cleanup_buf struct buf m = {0};
    enum { CHANNELS = 5 };
    int fds[CHANNELS + CGROUP_METERS + 1] = {b->cell_out_fd, b->cell_in_fd, b->stdout_fd,
                                             b->stderr_fd, b->files_fd};
    unsigned n = CHANNELS + b->n_meters;

    memcpy(fds + CHANNELS, b->meters, sizeof(b->meters));
    if (b->workspace_fd >= 0)
        fds[n++] = b->workspace_fd;
    b->phase = BOX_OUT;
    b->requested = false;
    msg_begin(&m, KEEPER_CREATED);
    fields_put_u32(&m, b->request);
    fields_put_u32(&m, b->id);
    fields_put_u8(&m, from_pool);
    fields_put_u8(&m, (uint8_t)s->cgroups.version);
    fields_put_u8(&m, b->has_files);
    owner_tell(s, &m, fds, n);
    close_owner_ends(b);
    s->refill_at_ms = clock_now_ms() + REFILL_DELAY_MS;
}

/* ---- requests ---- */

void box_create(struct state *s, uint32_t request, uint32_t environment, const struct limits *l)
{
    struct zygote *z;
    struct err e;

    if (environment >= s->options->n_environments) {
        box_tell_failed(s, request, "there is no such environment");
        return;
    }
    struct box *b = stock_take(s, BOX_READY, environment, l);
    if (b) {
        b->request = request;
        b->requested = true;
        box_hand_over(s, b, true);
        return;
    }
    z = &s->zygotes[environment];
    if (z->pid == 0 && zygote_start(s, environment, &e) < 0) {
        box_tell_failed(s, request, e.text);
        return;
    }
    struct box *blank = stock_take(s, BOX_BLANK, environment, l);
    b = blank ? blank : box_new(s, environment, l);
    if (!b) {
        box_tell_failed(s, request, "too many sessions are open; end one first");
        return;
    }
    b->request = request;
    b->requested = b->plan.awaited = true;
    if (blank)
        box_fill(s, b);
    else
        box_make(s, b);
}

struct box *box_find(struct state *s, uint32_t id)
{
    for (struct box *b = s->boxes; b; b = b->next)
        if (b->id == id)
            return b;
    return NULL;
}

/* Hear the next of init's words that lie there unread, but for those of one type. Which it was; 0: there is none, or it
 * makes no sense, and then it is the last. */
static uint32_t hear_next(struct state *s, struct box *b, uint32_t unless)
{
    struct pollfd words = {.fd = b->init_setup.fd, .events = POLLIN};
    struct err e;

    if (words.fd < 0 || poll(&words, 1, 0) <= 0)
        return 0;
    uint32_t type = msg_recv(words.fd, &s->in, &e) > 0 ? s->in.type : 0;
    if (type && type != unless && box_hear(s, b, &s->in) < 0)
        type = 0;
    msg_done(&s->in);
    if (!type)
        watch_close(s, &b->init_setup);
    return type;
}

/* init has told the owner of a successor too, who may have been quicker to act on it than we to read of it. */
static void hear_of_successor(struct state *s, struct box *b)
{
    for (unsigned i = 0; i < SAID_MOST && !b->kernel_pid && !b->live_pid; i++) {
        uint32_t said = hear_next(s, b, 0);
        if (!said || said == SETUP_DIED)
            return;
    }
}

void box_signal(struct state *s, struct box *b, int signal)
{
    hear_of_successor(s, b);
    pid_t pid = b->kernel_pid ? b->kernel_pid : b->live_pid;
    if (!pid)
        return;
    /* An interrupt goes to the group, as from a terminal: what a cell has started gets it too. A child of
     * ours is not reaped yet, so the number can mean no one else; one that waited before is init's, and is
     * asked after first. */
    if (b->live_pid && syscall(SYS_pidfd_send_signal, b->live_fd, 0, NULL, 0) < 0)
        return;
    if (signal == SIGINT && kill(-pid, SIGINT) == 0)
        return;
    kill(pid, signal);
}

/* ---- those that wait ---- */

/* Its number as we see it, which the kernel tells of a pidfd. */
pid_t pid_of(int pidfd)
{
    char path[64], text[1024];
    struct err ignored;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    if (fd_get_text(AT_FDCWD, path, text, sizeof(text), &ignored) < 0)
        return 0;
    const char *line = strstr(text, "\nPid:");
    long pid = line ? strtol(line + 5, NULL, 10) : 0;
    return pid > 0 ? (pid_t)pid : 0; /* -1: it is dead and gone */
}

/* Those that wait are none of the processes that a guest may have. */
static void allow_pids(struct state *s, struct box *b)
{
    uint64_t pids = b->limits.pids;
    struct err ignored;

    if (b->n_waiting >
        0) /* else nobody takes the interpreter's place, and nothing is to be started */
        cgroup_limit_pids(&s->cgroups, b->id, pids == LIMIT_NONE ? pids : pids + b->n_waiting,
                          &ignored);
}

static void on_waits(struct state *s, struct box *b, pid_t pid, bool waits)
{
    unsigned i = 0;

    while (i < b->n_waiting && b->waiting[i] != pid)
        i++;
    if (waits && i == b->n_waiting && i < BOX_WAITING_MAX + 1)
        b->waiting[b->n_waiting++] = pid;
    else if (!waits && i < b->n_waiting)
        b->waiting[i] = b->waiting[--b->n_waiting];
    else
        return;
    allow_pids(s, b);
}

void box_live(struct box *b, struct msg *m)
{
    fd_close(&b->live_fd);
    b->live_fd = msg_take_fd(m, 0);
    b->live_pid = b->live_fd < 0 ? 0 : pid_of(b->live_fd);
}

/* Who waits was said before the interpreter went on, and may not have been read yet. */
static void hear_all(struct state *s, struct box *b)
{
    for (unsigned i = 0; i < SAID_MOST && hear_next(s, b, SETUP_DIED); i++)
        ;
}

static void kernel_ended(struct state *s, struct box *b, int status)
{
    hear_all(s, b);
    /* What the cells have started goes with the interpreter. init stays, for the files. */
    const struct cgroup_spared spared = {b->init_pid, b->waiting, b->n_waiting};

    cgroup_end_others(&s->cgroups, b->id, &spared);
    allow_pids(s, b);
    tell_died(s, b, status);
    b->memory_short = false;
}

int box_hear(struct state *s, struct box *b, struct msg *m)
{
    struct fields f;

    fields_init(&f, m->data, m->len);
    uint32_t number = m->type == SETUP_WAITS || m->type == SETUP_DIED ? fields_get_u32(&f) : 0;
    bool waits = m->type == SETUP_WAITS && fields_get_u8(&f);
    if (m->type != SETUP_LENT && !fields_end(&f))
        return -1;
    switch (m->type) {
    case SETUP_SHORT:
        b->memory_short = true;
        return 0;
    case SETUP_WAITS:
        on_waits(s, b, (pid_t)number, waits);
        return 0;
    case SETUP_LIVE:
        box_live(b, m);
        return 0;
    case SETUP_LENT:
        box_lent(s, b, m);
        return 0;
    case SETUP_DIED:
        b->live_pid = 0;
        fd_close(&b->live_fd);
        if (b->phase == BOX_OUT)
            kernel_ended(s, b, (int)number);
        return 0;
    default:
        return -1;
    }
}

/* ---- deaths ---- */

static void on_kernel_died(struct state *s, struct box *b, int status)
{
    struct err e = {0};

    b->kernel_pid = 0;
    switch (b->phase) {
    case BOX_MAKING:
        /* The same as of init, below. */
        if (box_setup_speaks(&b->kernel_setup) &&
            box_setup_recv(s, b, &b->kernel_setup, "the kernel process") == 0)
            return;
        err_set(&e, 0, "the kernel process died while it was set up (wait status %d)", status);
        box_fail_step(s, b, "box-fork", &e);
        break;
    case BOX_BLANK: /* has none */
    case BOX_READY:
        box_end(s, b);
        break;
    case BOX_OUT:
        kernel_ended(s, b, status);
        break;
    case BOX_ENDING:
        box_free_when_gone(s, b);
        break;
    }
}

static void on_init_died(struct state *s, struct box *b)
{
    struct err e = {0};

    b->init_pid = 0;
    if (b->phase == BOX_MAKING) {
        /* It has said why, in a message that may still lie unread: that one ends the box. */
        if (b->init_setup.fd >= 0 && !b->init_stands &&
            box_setup_recv(s, b, &b->init_setup, "init") == 0)
            return;
        err_set(&e, 0, "init died while the box was set up");
        box_fail_step(s, b, "box-fork", &e);
    } else if (b->phase == BOX_BLANK || b->phase == BOX_READY) {
        box_end(s, b);
    } else if (b->phase == BOX_OUT) {
        /* The kernel process dies with its namespace, and the owner hears of that when we reap it; one that
         * was init's child nobody reaps any more. */
        if (!b->kernel_pid)
            tell_died(s, b, SIGKILL);
    } else {
        box_free_when_gone(s, b);
    }
}

bool box_child_died(struct state *s, pid_t pid, int status)
{
    for (struct box *b = s->boxes; b; b = b->next) {
        if (b->kernel_pid == pid) {
            on_kernel_died(s, b, status);
            return true;
        }
        if (b->init_pid == pid) {
            on_init_died(s, b);
            return true;
        }
        if (b->maker_pid == pid || b->usher_pid == pid) {
            *(b->maker_pid == pid ? &b->maker_pid : &b->usher_pid) = 0;
            box_free_when_gone(s, b);
            return true;
        }
    }
    return false;
}
