/* The gate's filter: what it refuses works for anybody else, and what a server needs works in it. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gate/confine.h"

#define NOBODY 65534

/* Does the call get as far as the kernel, whatever it says then? */
static bool reached(long result)
{
    return result >= 0 || errno != ENOSYS;
}

static int pair[2];     /* a socket that one may write to */
static int listener;    /* shut, and so free to be connected */
static pid_t other_pid; /* a process that is ours */

static bool connects(int call)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct iovec piece = {.iov_base = "x", .iov_len = 1};
    struct mmsghdr m = {
        .msg_hdr = {
            .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &piece, .msg_iovlen = 1}};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (call == SYS_sendto)
        return reached(
            sendto(listener, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&to, sizeof(to)));
    if (call == SYS_sendmsg)
        return reached(sendmsg(listener, &m.msg_hdr, MSG_FASTOPEN | MSG_NOSIGNAL));
    return reached(sendmmsg(listener, &m, 1, MSG_FASTOPEN | MSG_NOSIGNAL));
}

/* What the gate has no business with; the bits of those that get through. */
static unsigned forbidden(void)
{
    struct rlimit limit;
    char c = 'x';
    const bool acts[] = {
        connects(SYS_sendto),
        connects(SYS_sendmsg),
        connects(SYS_sendmmsg),
        reached(ioctl(pair[0], TIOCSTI, &c)),
        reached(syscall(SYS_ioctl, pair[0], TIOCSTI | 1ul << 32, &c)),
        reached(kill(other_pid, 0)),
        reached(syscall(SYS_tgkill, other_pid, other_pid, 0)),
        reached(prlimit(other_pid, RLIMIT_NOFILE, NULL, &limit)),
    };
    unsigned bits = 0;

    for (unsigned i = 0; i < sizeof(acts); i++)
        bits |= acts[i] ? 1u << i : 0;
    return bits;
}
#define ALL_ACTS 0xffu

/* What it does all day. */
static bool needed(void)
{
    struct iovec piece = {.iov_base = "x", .iov_len = 1};
    struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};
    struct rlimit limit;
    int there;

    return send(pair[0], "x", 1, MSG_NOSIGNAL) == 1 && sendmsg(pair[0], &m, MSG_NOSIGNAL) == 1 &&
           ioctl(pair[1], FIONREAD, &there) == 0 && there == 2 &&
           getrlimit(RLIMIT_NOFILE, &limit) == 0 && syscall(SYS_tgkill, getpid(), getpid(), 0) == 0;
}

static void prepare(void)
{
    other_pid = getppid();
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (listener < 0 || listen(listener, 1) < 0 || shutdown(listener, SHUT_RDWR) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        _exit(1);
}

/* In a process of its own: there is no way back. */
static int in_a_gate(const char *dir)
{
    struct err e;
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        prepare();
        if (forbidden() != ALL_ACTS) /* else the check below could not fail */
            _exit(2);
        prepare();
        if (confine_gate(dir, NOBODY, NOBODY, &e) < 0) {
            fprintf(stderr, "%s\n", e.text);
            _exit(3);
        }
        if (prctl(PR_GET_SECCOMP) == 0)
            _exit(0); /* sanitizers need calls that a gate has no use for */
        if (!needed())
            _exit(4);
        _exit(forbidden() == 0 ? 0 : 5);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_gate_keeps_to_itself(void **state)
{
    char dir[] = "/tmp/retort-confine-XXXXXX";
    (void)state;

    assert_non_null(mkdtemp(dir));
    assert_true(geteuid() != 0 || chown(dir, NOBODY, NOBODY) == 0);
    assert_int_equal(in_a_gate(dir), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gate_keeps_to_itself)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
