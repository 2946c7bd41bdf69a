/* asker: see asker.h. This is the process that takes orders; question.c is the one that answers one. */
#include "asker/asker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/find.h"
#include "asker/question.h"
#include "base/fd.h"
#include "box/identity.h"
#include "box/landlock.h"
#include "wire/fields.h"
#include "wire/msg.h"

/* Beside the gate's (gate/confine.c), and as that: no account has it. */
#define ASKER_UID 2013265921u

/* ---- its rights ---- */

/* Names of hosts, certificates and libraries are read; nothing is written anywhere. */
static int confine(const struct asker_options *o, struct err *e)
{
    static const char *const read[] = {"/etc", "/usr", "/lib",       "/lib64",
                                       "/run", "/dev", "/proc/self", NULL};
    static const char *const write[] = {NULL};
    const struct landlock_places places = {.read = read, .write = write};
    const struct rlimit none = {0, 0};

    if (setrlimit(RLIMIT_CORE, &none) < 0) /* the key is in our memory */
        return err_set(e, errno, "cannot do without core files");
    if (o->root && (identity_become(ASKER_UID, ASKER_UID, true, e) < 0 || identity_drop(e) < 0))
        return err_wrap(e, "the asker's confinement");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_set(e, errno, "cannot set no_new_privs");
    return landlock_confine(&places, e) < 0 ? err_wrap(e, "the asker's confinement") : 0;
}

/* ---- orders ---- */

static void serve_one(const struct asker_options *o, const struct model *m, struct msg *order)
{
    int from = msg_take_fd(order, 0), events = msg_take_fd(order, 1);

    if (from < 0 || events < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        close_range(3, (unsigned)(from < events ? from : events) - 1, 0); /* no other's */
        _exit(question_main(o, m, from, events));
    }
    fd_close(&from);
    fd_close(&events);
}

_Noreturn static void take_orders(const struct asker_options *o, const struct model *m, int fd)
{
    static struct msg order;
    struct err e;

    for (;;) {
        int r = msg_recv(fd, &order, &e);
        if (r == 0 || (r < 0 && e.code != EINTR && e.code != EMFILE))
            _exit(0); /* the gate is gone: our children hear it from the kernel */
        if (r > 0 && order.type == ASKER_ORDER)
            serve_one(o, m, &order);
        msg_done(&order);
    }
}

/* ---- starting ---- */

/* Whether it stands, to who started it. */
static void report(int fd, const struct err *e)
{
    cleanup_buf struct buf m = {0};
    struct err ignored;

    msg_begin(&m, ASKER_ORDER);
    fields_put_text(&m, e ? e->text : "");
    msg_send(fd, &m, NULL, 0, &ignored);
}

_Noreturn static void asker_main(const struct asker_options *o, int fd)
{
    static struct model model;
    struct buf notes = {0};
    struct err e;

    /* A terminal's Ctrl-C is for the server, which ends us; and the dead are not waited for. */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    /* The server's own descriptors, its port and its keeper, are none of ours. */
    if (fd_place(&fd, 1, 3, 0) < 0)
        _exit(1);
    close_range(4, ~0U, 0);
    /* The key is read with the rights of who started the server, and before the first foreign byte. */
    const struct model_wish wish = {.model = o->model, .config = o->model_config};
    if (model_find(&wish, &model, &notes, &e) < 0 || confine(o, &e) < 0) {
        report(3, &e);
        _exit(1);
    }
    report(3, NULL);
    take_orders(o, &model, 3);
}

/* From here on nobody in this process needs them, and what it reads next is foreign. */
static void forget_keys(void)
{
    static const char *const names[] = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY",
                                        "GOOGLE_API_KEY"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char *value = getenv(names[i]);
        if (value)
            explicit_bzero(value, strlen(value));
        unsetenv(names[i]);
    }
}

int asker_start(const struct asker_options *o, int *ret_fd, struct err *e)
{
    static struct msg answer;
    struct fields f = {0};
    char why[sizeof(e->text)] = "";
    int pair[2];

    if (msg_pair(pair, e) < 0)
        return -1;
    pid_t pid = fork();
    if (pid < 0) {
        close(pair[0]);
        close(pair[1]);
        return err_set(e, errno, "cannot fork the asker");
    }
    if (pid == 0)
        asker_main(o, pair[1]);
    close(pair[1]);
    forget_keys();
    int r = msg_recv(pair[0], &answer, e);
    if (r > 0) {
        fields_init(&f, answer.data, answer.len);
        fields_get_text(&f, why, sizeof(why));
    }
    msg_done(&answer);
    if (r <= 0 || f.failed || why[0]) {
        close(pair[0]);
        return err_set(e, 0, "the model cannot be used: %s", why[0] ? why : "the asker died");
    }
    *ret_fd = pair[0];
    return 0;
}
