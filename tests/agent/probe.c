/* probe: the protocols without a network, for tests that hold them against a server of somebody else's making.
 *
 *     probe request <{"protocol","name","base","key","tools","sees","stream","talk"}    {"path","headers","body"}
 *     probe reply PROTOCOL stream|whole <BYTES                                        {"message","heard",…} or {"error"}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/protocol.h"
#include "agent/reply.h"
#include "base/buf.h"
#include "base/err.h"
#include "guest/events.h"

static struct reply reply;
static struct buf heard[1 + REPLY_CALLS]; /* text, then code */

static void read_all(struct buf *b)
{
    ssize_t n;

    while ((n = read(0, buf_room(b, 4096), 4096)) > 0)
        b->len += (size_t)n;
}

static int print(json_t *j)
{
    char *text = json_dumps(j, JSON_COMPACT);

    assert_that(text);
    puts(text);
    return 0;
}

static void add_line(void *ctx, const char *line)
{
    json_array_append_new(ctx, json_string(line));
}

static char *member(const json_t *j, const char *name)
{
    return (char *)json_string_value(json_object_get(j, name));
}

static int request(void)
{
    struct buf input = {0}, path = {0};
    read_all(&input);
    json_t *j = json_loadb(input.data, input.len, 0, NULL), *lines = json_array();
    struct model m = {.protocol = protocol_find(member(j, "protocol")),
                      .name = member(j, "name"),
                      .base = member(j, "base"),
                      .key = member(j, "key"),
                      .tools = json_is_true(json_object_get(j, "tools")),
                      .sees = json_is_true(json_object_get(j, "sees"))};
    struct request r = {.system = "You are a test.",
                        .talk = json_object_get(j, "talk"),
                        .stream = json_is_true(json_object_get(j, "stream"))};

    m.protocol->path(&m, r.stream, &path);
    m.protocol->headers(&m, add_line, lines);
    return print(json_pack("{s:s, s:o, s:o}", "path", buf_text(&path), "headers", lines, "body",
                           m.protocol->body(&m, &r)));
}

static void on_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    buf_add(&heard[0], text, len);
}

static void on_code(void *ctx, unsigned call, const char *text, size_t len)
{
    (void)ctx;
    buf_add(&heard[1 + call], text, len);
}

static int on_event(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
    const struct protocol *p = ctx;

    return p->event(&reply, name, data, len, e);
}

static int understand(const struct protocol *p, bool stream, struct err *e)
{
    struct buf input = {0};
    struct events ev;

    read_all(&input);
    if (!stream) {
        json_t *body = json_loadb(input.data, input.len, JSON_ALLOW_NUL, NULL);
        return body ? p->whole(&reply, body, e) : err_set(e, 0, "no JSON");
    }
    events_init(&ev, 1u << 20, on_event, (void *)p);
    return events_feed(&ev, input.data, input.len, e);
}

static int hear(const struct protocol *p, bool stream)
{
    static const struct reply_view view = {.text = on_text, .code = on_code};
    json_t *all = json_array();
    struct err e;

    reply_init(&reply, &view);
    if (understand(p, stream, &e) < 0 || reply_finish(&reply, &e) < 0)
        return print(json_pack("{s:s}", "error", e.text));
    for (unsigned i = 0; i <= reply.n_calls; i++)
        json_array_append_new(all, json_string(buf_text(&heard[i])));
    reply_take_blocks(&reply);
    return print(json_pack("{s:o, s:o, s:b, s:b, s:[I, I]}", "message",
                           reply_message(&reply, p->name), "heard", all, "cut", reply.cut,
                           "refused", reply.refused, "tokens", (json_int_t)reply.tokens_in,
                           (json_int_t)reply.tokens_out));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "request") == 0)
        return request();
    if (argc == 4 && strcmp(argv[1], "reply") == 0 && protocol_find(argv[2]))
        return hear(protocol_find(argv[2]), strcmp(argv[3], "stream") == 0);
    return 2;
}
