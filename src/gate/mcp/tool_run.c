/* tool_run: run_python.
 *
 * What the cell writes is told while it runs to whoever asked for that, not piece by piece but a few times a second:
 * the newest of it, since the whole comes with the answer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gate/mcp/tools.h"
#include "session/sanitise.h"
#include "session/utf8.h"

#define TELL_MS 100
#define TELL_BYTES (4u << 10)

struct run {
    struct work w;
    struct run *next; /* of those whose progress is wanted */
    struct sanitiser sanitiser;
    struct buf news; /* that were not told yet */
    uint64_t written;
    uint64_t told; /* of them */
    int64_t told_ms;
};

static struct run *runs;

/* ---- progress ---- */

/* The newest of it, in whole characters. */
static void tell(struct run *r)
{
    cleanup_buf struct buf text = {0};
    size_t from = r->news.len > TELL_BYTES ? r->news.len - TELL_BYTES : 0;

    while (from < r->news.len && ((unsigned char)r->news.data[from] & 0xC0) == 0x80)
        from++;
    utf8_repair(&text, r->news.data + from, r->news.len - from);
    r->news.len = 0;
    r->told = r->written;
    mcp_progress(r->w.call, (double)r->written, buf_text(&text));
}

int64_t mcp_runs_tick(int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    struct run *r = runs;

    while (r) {
        bool news = r->told != r->written;
        if (news && (now_ms - r->told_ms >= TELL_MS || now_ms < r->told_ms)) {
            r->told_ms = now_ms;
            tell(r);
            r = runs; /* whoever was told may have ended some */
            continue;
        }
        if (news && r->told_ms + TELL_MS < next_ms)
            next_ms = r->told_ms + TELL_MS;
        r = r->next;
    }
    return next_ms;
}

static void on_wrote(void *work, const char *text, size_t len)
{
    struct run *r = work;

    sanitise(&r->sanitiser, text, len, &r->news);
    if (r->news.len > 2 * TELL_BYTES)
        buf_drop(&r->news, r->news.len - TELL_BYTES);
    if (r->news.cap > 16 * TELL_BYTES) { /* one piece was large */
        struct buf kept = {0};
        buf_add(&kept, r->news.data, r->news.len);
        buf_done(&r->news);
        r->news = kept;
    }
    r->written += len;
    gate_arm(r->w.call->gate, r->told_ms + TELL_MS);
}

/* ---- the tool ---- */

static void run_free(struct work *w)
{
    struct run *r = (struct run *)w;

    for (struct run **at = &runs; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    buf_done(&r->news);
}

static void on_cell(struct work *w, const struct inner_answer *a)
{
    if (a->status != 200) {
        work_refused(w, a);
        return;
    }
    const char *status = json_string_value(json_object_get(a->body, "status"));
    bool failed = !status || strcmp(status, "ok") != 0;
    json_t *content = content_cell(w->call, a->body, w->session, w->made);
    work_result(w, content, content_cell_structured(a->body, w->session), failed);
}

static void on_ready(struct work *w)
{
    static const struct inner_events silent = {.answered = work_answered};
    static const struct inner_events telling = {.wrote = on_wrote, .answered = work_answered};
    json_t *timeout = json_object_get(w->arguments, "timeout");
    json_t *cell = json_pack("{s:O,s:i}", "code", json_object_get(w->arguments, "code"), "pictures",
                             PICTURE_SIDE);

    if (timeout && !json_is_null(timeout))
        json_object_set(cell, "timeout", timeout);
    work_ask_with(w, "POST", "/cells", cell, w->call->progress_token ? &telling : &silent, on_cell);
}

void tool_run_python(struct mcp_call *c, const json_t *arguments)
{
    struct run *r = work_new(c, arguments, sizeof(*r), run_free);

    r->sanitiser.no_colours = true;
    if (c->progress_token) {
        r->next = runs;
        runs = r;
    }
    work_in_session(&r->w, on_ready);
}
