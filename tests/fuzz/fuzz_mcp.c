/* Messages of MCP, as a program at standard input writes them: through the two eras, the table of methods, the tools
 * and the calls that they are made of, with a keeper and a box that are socket pairs. No crash; whatever comes out is
 * lines of JSON-RPC; and nothing is left when the program is gone.
 *
 * In the input "$S" stands for a session that is alive. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "fake_gate.h"
#include "gate/inner.h"
#include "gate/mcp/protocol.h"
#include "gate/mcp/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config config;
static char session[SESSION_ID_MAX];
static struct holder *holder;

static void start(void)
{
    static struct gate_start s = {
        .config = &config, .environments = {"default"}, .listen_fd = -1, .asker_fd = -1};
    struct err e;

    signal(SIGPIPE, SIG_IGN);
    config_default(&config);
    config.log_requests = false;
    config.limits.disk = 1 << 20;
    config.max_sessions = 32;
    s.vessel = fake_vessel();
    s.in_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s.out_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fake_check(gate_open(&gate, &s, &e), &e);
    holder = gate.holders;
    mcp_stdio_close(&gate); /* each input has its own */
}

static void on_session(void *ctx, const struct inner_answer *a)
{
    const char *id = json_string_value(json_object_get(a->body, "id"));
    (void)ctx;

    if (!id)
        bug("no session");
    strcpy(session, id);
}

static void make_session(void)
{
    static const struct inner_events events = {.answered = on_session};

    inner_call(&gate, holder, "POST", "/v1/sessions", json_object(), &events, NULL);
    fake_turns(4);
}

static void replace(struct buf *to, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool mark = i + 1 < size && data[i] == '$' && data[i + 1] == 'S';
        if (mark)
            buf_add_text(to, session);
        else
            buf_add(to, data + i, 1);
        i += mark;
    }
}

/* Whole lines, each one message. */
static void check_output(struct buf *out)
{
    const char *at = out->data;

    for (size_t left = out->len; left > 0;) {
        const char *end = memchr(at, '\n', left);
        assert_that(end);
        json_t *j =
            json_loadb(at, (size_t)(end - at), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        const char *version = json_string_value(json_object_get(j, "jsonrpc"));
        assert_that(version && strcmp(version, "2.0") == 0);
        assert_that(json_object_get(j, "method") || json_object_get(j, "result") ||
                    json_object_get(j, "error"));
        json_decref(j);
        left -= (size_t)(end + 1 - at);
        at = end + 1;
    }
}

static void drain(int fd, struct buf *to)
{
    char piece[4096];

    for (ssize_t n; (n = read(fd, piece, sizeof(piece))) > 0;)
        buf_add(to, piece, (size_t)n);
}

/* A session that nobody knows of ends, which takes a moment where a cell runs that does not stop. */
static void check_rest(void)
{
    unsigned ending = 0;

    for (const struct live *l = gate.lives; l; l = l->next) {
        assert_that(!l->transfers && !l->creator && l->n_queue == 0);
        ending += l->deleter != NULL;
    }
    assert_that(gate.n_requests == ending);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_buf struct buf said = {0}, out = {0};
    int in[2], back[2];

    if (!gate.mcp)
        start();
    if (!gate.lives)
        make_session();
    replace(&said, data, size);
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(back, O_CLOEXEC) < 0)
        bug("no pipe");
    fd_set_nonblock(back[0]);
    mcp_stdio_open(&gate, holder, in[0], back[1]);
    for (size_t at = 0; at < said.len;) {
        size_t n = said.len - at < 4096 ? said.len - at : 4096;
        if (write(in[1], said.data + at, n) != (ssize_t)n)
            bug("cannot write");
        at += n;
        fake_turns(3);
        drain(back[0], &out);
    }
    close(in[1]);
    fake_turns(4);
    drain(back[0], &out);
    check_output(&out);
    mcp_stdio_close(&gate);
    fake_turns(4);
    assert_that(!gate.mcp->peers && !gate.mcp->listeners);
    check_rest();
    close(in[0]);
    close(back[0]);
    close(back[1]);
    if (gate.n_lives > 8)
        lives_end_all(&gate, "deleted");
    fake_turns(2);
    return 0;
}
