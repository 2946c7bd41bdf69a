/* Whole requests, as a client's socket brings them: through libmicrohttpd, the table of calls and the
 * handlers, with a keeper and a box that are socket pairs. No crash, no request, session or transfer left
 * when the client is gone, and an answer that begins as HTTP does.
 *
 * In the input "$T" stands for a valid token and "$S" for a session that is alive. */
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "fake_gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config config;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char token[TOKEN_TEXT_MAX];
static char session[SESSION_ID_MAX];

/* ---- once ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void start(void)
{
    static char dir[] = "/tmp/fuzz-requests-XXXXXX";
    static const struct quota quota = {LIMIT_NONE, LIMIT_NONE, LIMIT_NONE};
    static struct gate_start s = {.config = &config, .environments = {"default"}};
    struct store *store;
    struct err e;

    signal(SIGPIPE, SIG_IGN);
    cleanup_fd int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!mkdtemp(dir) || chdir(dir) < 0)
        bug("no directory");
    snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", dir); /* abstract: no file */
    config_default(&config);
    config.log_requests = false;
    config.limits.disk = 1 << 20;
    fake_check(store_open(NULL, &store, &e), &e);
    fake_check(store_token_new(store, "fuzz", &quota, true, token, &e), &e);
    store_close(store);
    s.vessel = fake_vessel();
    s.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(s.listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(s.listen_fd, 8) < 0)
        bug("no socket");
    fake_check(gate_open(&gate, &s, &e), &e);
    if (fchdir(before) < 0) /* the inputs' names may be relative */
        bug("cannot go back");
    /* A fuzzer ends as it likes: what the gate has open stays open, and nothing is left. */
    if (nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS) < 0)
        bug("cannot remove %s", dir);
}

static int connect_client(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        bug("cannot connect");
    fd_set_nonblock(fd);
    return fd;
}

/* Send, let the gate work, read what it answers. */
static size_t talk(int fd, const char *data, size_t len, char *answer, size_t size)
{
    size_t sent = 0, got = 0;

    for (unsigned idle = 0; idle < 3; idle++) {
        ssize_t n = sent < len ? send(fd, data + sent, len - sent, MSG_NOSIGNAL) : 0;
        if (n > 0) {
            sent += (size_t)n;
            idle = 0;
        }
        fake_turns(2);
        while ((n = recv(fd, answer + (got < size / 2 ? got : 0), size / 2, 0)) > 0) {
            got += (size_t)n;
            idle = 0;
        }
    }
    return got;
}

static void make_session(void)
{
    char request[512], answer[4096] = "";
    int fd = connect_client();
    int n = snprintf(request, sizeof(request),
                     "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                     "Content-Length: 23\r\n\r\n{\"idle_timeout\":\"none\"}",
                     token);

    talk(fd, request, (size_t)n, answer, sizeof(answer));
    const char *id = strstr(answer, "\"id\":\"");
    if (!id || sscanf(id, "\"id\":\"%63[^\"]", session) != 1)
        bug("no session: %s", answer);
    close(fd);
    fake_turns(3);
}

static void replace(struct buf *to, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool mark = i + 1 < size && data[i] == '$';
        if (mark && data[i + 1] == 'T')
            buf_add_text(to, token);
        else if (mark && data[i + 1] == 'S')
            buf_add_text(to, session);
        else
            buf_add(to, data + i, 1);
        i += mark && (data[i + 1] == 'T' || data[i + 1] == 'S');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char answer[1 << 16];
    cleanup_buf struct buf request = {0};

    if (!gate.http)
        start();
    if (!gate.lives)
        make_session(); /* the last input has ended it */
    replace(&request, data, size);
    int fd = connect_client();
    memset(answer, 0, 8);
    size_t got = talk(fd, request.data ? request.data : "", request.len, answer, sizeof(answer));
    assert_that(got == 0 || memcmp(answer, "HTTP/1.", 7) == 0);
    close(fd);
    fake_turns(4);
    assert_that(gate.n_requests == 0 && gate.held == 0 && gate.n_runs == 0);
    /* Nothing answers in this box: whoever waited for it has left with his client. */
    for (const struct live *l = gate.lives; l; l = l->next)
        assert_that(!l->transfers && !l->creator && l->n_queue == 0);
    if (gate.n_lives > 8)
        lives_end_all(&gate, "deleted");
    return 0;
}
