/* telling: the agent's work as events of JSON, for programs: lines of "ask --json", and the stream of POST /v1/ask.
 *
 *     asking   {}                                  the model is asked
 *     text     {"text"}                            it says this
 *     code     {"call","text"}                     it writes this, in the cell with that number of its reply
 *     again    {"why","seconds"}                   what came since "asking" is void
 *     reply    {}                                  its reply is whole
 *     running  {"code"}
 *     stdout, stderr, display, result              as a cell's stream has them
 *     cell     the cell
 *     note     {"text"}                            a sentence of ours
 *     file     {"path","size"}                     was saved (ask -o)
 *     answer   {"text","end","why","cells",…}      the last one
 */
#pragma once

#include <jansson.h>

#include "agent/agent.h"

struct telling {
    /* `data` is an object, and taken over. */
    void (*tell)(void *ctx, const char *event, json_t *data);
    void *ctx;
    unsigned summary; /* bytes of a cell's */
    struct agent_view view;
};

void telling_init(struct telling *t, void (*tell)(void *ctx, const char *event, json_t *data),
                  void *ctx, unsigned summary);

/* The last event. */
json_t *answer_json(const struct agent_answer *a);
/* "answered", "bound", "stopped", "refused". */
const char *agent_end_name(enum agent_end end);
