/* asker: the process that asks models for a server, beside its gate.
 *
 *     serve ──fork──▶ asker ──fork──▶ one for each question: reads the order, asks the model, runs cells through the
 *       │               ▲                server's own API with the token of who asked, and tells the events
 *       └▶ the gate ────┘ orders
 *
 * It is the only one that has the model's key, and a way to other machines; it has no box, no state and no rights
 * of its own on the host. It ends with the gate: their socket is closed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* An order is a message of this type with two descriptors: a pipe with the order as JSON (the members of POST
 * /v1/ask and "token"), and one for events, which come as server-sent events of one line of JSON each. */
#define ASKER_ORDER 1
#define ASKER_ORDER_MAX (1u << 20)
/* The events: those of agent/telling.h, "session" first, and "answer" or this last:
 * {"status","code","message"}. */
#define ASKER_FAILED "failed"
#define ASKER_NAME_MAX 16

struct asker_options {
    const char *address; /* of the server, as in a URL */
    const char *model;
    const char *model_config; /* or NULL */
    unsigned cells, tokens;   /* bounds of a question */
    double time_s;            /* infinite: none */
    bool root;                /* then it becomes somebody who has no account */
};

/* Start it. *ret_fd is where orders go. Whatever the
 * environment has of keys is wiped from this process afterwards. Call it when the keeper stands, before the gate gives
 * its rights up. */
int asker_start(const struct asker_options *o, int *ret_fd, struct err *e);
