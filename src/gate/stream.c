/* stream: a cell as server-sent events.
 *
 * What a slow reader has not taken waits here, up to a bound for text and one for displays. What is beyond
 * comes with the whole cell at its end. The cell never waits for its reader.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gate/inside.h"
#include "session/cell_json.h"

#define TEXT_WAITING_MAX (32u << 20)
#define DISPLAYS_WAITING_MAX (4u << 20)
#define COMMENT_MS 10000
#define BLOCK (64u << 10)

struct stream {
    struct stream *prev, *next;
    struct request *request;
    struct buf out;
    size_t sent;
    uint64_t held;
    bool over;
    int64_t spoke_ms;
    bool *shown; /* for each display of the cell: was it streamed? */
    unsigned n_shown;
};

static struct stream *streams;

static ssize_t read_some(void *ctx, uint64_t pos, char *to, size_t max)
{
    struct stream *s = ctx;
    size_t n = s->out.len - s->sent;
    (void)pos;

    if (s->request->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n == 0 && s->over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        request_pause(s->request);
        return 0;
    }
    if (n > max)
        n = max;
    memcpy(to, s->out.data + s->sent, n);
    s->sent += n;
    if (s->sent == s->out.len) {
        s->sent = s->out.len = 0;
        if (s->out.cap > BLOCK)
            buf_done(&s->out);
        request_holds(s->request, &s->held, s->out.cap);
    }
    return (ssize_t)n;
}

static void done(void *ctx)
{
    struct stream *s = ctx;

    if (s->prev)
        s->prev->next = s->next;
    else
        streams = s->next;
    if (s->next)
        s->next->prev = s->prev;
    buf_done(&s->out);
    free(s->shown);
    free(s);
}

struct stream *stream_new(struct request *r)
{
    struct stream *s = xcalloc(1, sizeof(*s));
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_some, s, done);

    s->request = r;
    s->next = streams;
    if (streams)
        streams->prev = s;
    streams = s;
    s->spoke_ms = clock_wall_ms();
    gate_arm(r->gate, s->spoke_ms + COMMENT_MS);
    response_begin(response, "text/event-stream; charset=utf-8");
    response_header(response, "X-Accel-Buffering", "no"); /* nginx would hold it back */
    request_reply(r, 200, response);
    return s;
}

/* ---- events ---- */

static void wake(struct stream *s)
{
    if (s->over)
        request_answer_holds(s->request, &s->held, s->out.cap);
    else
        request_holds(s->request, &s->held, s->out.cap);
    s->spoke_ms = clock_wall_ms();
    request_resume(s->request);
}

static bool has_room(const struct stream *s, size_t max)
{
    return s->out.len - s->sent < max && request_has_room(s->request);
}

static void event(struct stream *s, const char *name, const json_t *data)
{
    buf_add_fmt(&s->out, "event: %s\ndata: ", name);
    json_add(&s->out, data);
    buf_add(&s->out, "\n\n", 2);
    wake(s);
}

static const char *const names[] = {
    [OUTPUT_STDOUT] = "stdout",
    [OUTPUT_STDERR] = "stderr",
    [OUTPUT_DISPLAY] = "display",
    [OUTPUT_RESULT] = "result",
};

void stream_text(struct stream *s, enum output_kind kind, const char *text, size_t len)
{
    if (!has_room(s, TEXT_WAITING_MAX))
        return;
    json_t *j = json_pack("{s:s,s:o}", "type", names[kind], "text", cell_text_json(text, len));
    event(s, names[kind], j);
    json_decref(j);
}

void stream_display(struct stream *s, const struct output *o)
{
    bool shown = has_room(s, DISPLAYS_WAITING_MAX);

    s->shown = realloc(s->shown, s->n_shown + 1);
    if (!s->shown)
        bug("out of memory (a stream)");
    s->shown[s->n_shown++] = shown;
    if (!shown)
        return;
    json_t *j = cell_output_json(o);
    event(s, names[o->kind], j);
    json_decref(j);
}

void stream_error(struct stream *s, const struct cell *c)
{
    json_t *j = cell_error_json(c);

    event(s, "error", j);
    json_decref(j);
}

void stream_end(struct stream *s, json_t *cell, const struct buf *text)
{
    json_t *brief = cell_json_without(cell, s->shown, s->n_shown);

    s->over = true;
    if (brief) {
        event(s, "cell", brief);
        json_decref(brief);
        return;
    }
    buf_add_text(&s->out, "event: cell\ndata: ");
    buf_add(&s->out, text->data, text->len);
    buf_add(&s->out, "\n\n", 2);
    wake(s);
}

void stream_event(struct stream *s, const char *text, size_t len, bool dear, bool last)
{
    if (!dear && !has_room(s, TEXT_WAITING_MAX))
        return;
    s->over = last;
    buf_add(&s->out, text, len);
    buf_add(&s->out, "\n\n", 2);
    wake(s);
}

void stream_fail(struct stream *s, const char *why)
{
    json_t *j =
        json_pack("{s:s,s:o,s:s}", "name", "RetortError", "value", text_json(why), "traceback", "");

    s->over = true;
    event(s, "error", j);
    json_decref(j);
}

int64_t streams_tick(int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;

    for (struct stream *s = streams; s; s = s->next) {
        if (s->over)
            continue;
        if (now_ms - s->spoke_ms >= COMMENT_MS) {
            buf_add_text(&s->out, ": still here\n\n");
            wake(s);
        }
        if (s->spoke_ms + COMMENT_MS < next_ms)
            next_ms = s->spoke_ms + COMMENT_MS;
    }
    return next_ms;
}
