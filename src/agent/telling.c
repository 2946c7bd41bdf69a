/* telling: see telling.h. */
#include "agent/telling.h"

#include <string.h>

#include "session/cell.h"
#include "session/cell_json.h"

static void tell(void *ctx, const char *event, json_t *data)
{
    const struct telling *t = ctx;

    t->tell(t->ctx, event, data);
}

static json_t *text_json(const char *text, size_t len)
{
    return json_pack("{s:o}", "text", cell_text_json(text, len));
}

static void on_asking(void *ctx)
{
    tell(ctx, "asking", json_object());
}

static void on_text(void *ctx, const char *text, size_t len)
{
    tell(ctx, "text", text_json(text, len));
}

static void on_code(void *ctx, unsigned call, const char *text, size_t len)
{
    json_t *j = text_json(text, len);

    json_object_set_new(j, "call", json_integer(call));
    tell(ctx, "code", j);
}

static void on_again(void *ctx, const char *why, unsigned seconds)
{
    tell(ctx, "again",
         json_pack("{s:o,s:i}", "why", cell_text_json(why, strlen(why)), "seconds", (int)seconds));
}

static void on_replied(void *ctx)
{
    tell(ctx, "reply", json_object());
}

static void on_running(void *ctx, const char *code)
{
    tell(ctx, "running", json_pack("{s:o}", "code", cell_text_json(code, strlen(code))));
}

static void on_output(void *ctx, enum output_kind kind, const char *text, size_t len)
{
    json_t *j = text_json(text, len);

    json_object_set_new(j, "type", json_string(output_kind_name(kind)));
    tell(ctx, output_kind_name(kind), j);
}

static void on_display(void *ctx, const struct output *o)
{
    tell(ctx, output_kind_name(o->kind), cell_output_json(o));
}

static void on_ran(void *ctx, const struct cell *c)
{
    const struct telling *t = ctx;
    json_t *cell = cell_json(c, t->summary), *brief = cell_json_without(cell, NULL, 0);

    if (brief) {
        json_decref(cell);
        cell = brief;
    }
    tell(ctx, "cell", cell);
}

static void on_note(void *ctx, const char *sentence)
{
    tell(ctx, "note", text_json(sentence, strlen(sentence)));
}

static void on_tick(void *ctx)
{
    (void)ctx;
}

void telling_init(struct telling *t, void (*sink)(void *ctx, const char *event, json_t *data),
                  void *ctx, unsigned summary)
{
    *t = (struct telling){.tell = sink,
                          .ctx = ctx,
                          .summary = summary,
                          .view = {.asking = on_asking,
                                   .text = on_text,
                                   .code = on_code,
                                   .again = on_again,
                                   .replied = on_replied,
                                   .running = on_running,
                                   .output = on_output,
                                   .display = on_display,
                                   .ran = on_ran,
                                   .note = on_note,
                                   .tick = on_tick,
                                   .ctx = t}};
}

const char *agent_end_name(enum agent_end end)
{
    static const char *const names[] = {[AGENT_ANSWERED] = "answered",
                                        [AGENT_BOUND] = "bound",
                                        [AGENT_STOPPED] = "stopped",
                                        [AGENT_REFUSED] = "refused"};

    return names[end];
}

json_t *answer_json(const struct agent_answer *a)
{
    json_t *j = json_pack("{s:o,s:s}", "text", cell_text_json(a->text, strlen(a->text)), "end",
                          agent_end_name(a->end));

    json_object_set_new(j, "why", a->why ? cell_text_json(a->why, strlen(a->why)) : json_null());
    json_object_set_new(j, "cells", json_integer(a->cells));
    json_object_set_new(j, "failed", json_integer(a->failed));
    json_object_set_new(j, "wall_ms", json_integer((json_int_t)a->wall_ms));
    json_object_set_new(j, "tokens_in", json_integer((json_int_t)a->tokens_in));
    json_object_set_new(j, "tokens_out", json_integer((json_int_t)a->tokens_out));
    if (a->cost > 0)
        json_object_set_new(j, "cost", json_real(a->cost));
    return j;
}
