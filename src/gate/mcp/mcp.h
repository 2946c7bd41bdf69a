/* mcp: what the files of the MCP server share. It is a dialect of the gate: every tool and resource is made of calls
 * of the gate's own API (gate/inner.h), so that sessions, quotas, the journal and the ends of things are the same.
 *
 *   rpc.c              a message: JSON-RPC, its bounds and errors
 *   methods.c          the table: which method, in which era, who answers
 *   transport_http.c   POST, GET and DELETE of /mcp; headers, streams, the sessions of the older protocol
 *   transport_stdio.c  lines on standard input and output
 *   listen.c           who wants to hear of changes
 *   rounds.c           answers that ask for input first, and go on with the next request
 *   tools.c            the table of tools (tools.json says what clients see); checking arguments
 *   tool_*.c           the tools
 *   content.c          a cell as content for a model
 *   resources.c        files as resources
 *
 *     line, or body ─▶ rpc ─▶ struct mcp_call ─▶ method ─▶ tool ─▶ inner calls
 *                                  │   ▲                              │
 *     line, body or stream ◀── transport └── mcp_result, mcp_error ◀──┘
 *
 * Two eras are served at once: a request that carries the modern `_meta` is modern and stands alone; one without
 * belongs to a protocol session that `initialize` began (on stdio there is one). Everything below the table of
 * methods is the same for both but for what `call->era` says.
 *
 * Life of a call: made by a transport, given to its method, answered exactly once by mcp_result or mcp_error, which
 * free it; or abandoned (its client has gone away, or cancelled it): then whoever works for it is told once through
 * mcp_work, and it is freed. Nothing of a call is touched after either.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "gate/inside.h"

enum mcp_era { MCP_LEGACY, MCP_MODERN };

#define MCP_MODERN_VERSION "2026-07-28"
/* Of the older protocol, the newest first; ends with NULL. */
extern const char *const mcp_legacy_versions[];

/* Errors of JSON-RPC and of MCP. */
enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_NO_CAPABILITY = -32021,
    MCP_NO_VERSION = -32022,
};

struct mcp_call;

/* Where the messages of a call go; a transport's. */
struct mcp_outlet {
    /* The answer: a whole JSON-RPC message, to be taken over. The call is freed afterwards. */
    void (*answer)(struct mcp_call *c, json_t *message);
    /* A message that belongs to this call, before its answer. */
    void (*notify)(struct mcp_call *c, json_t *message);
    void (*free)(struct mcp_call *c);
};

struct mcp_call {
    const struct mcp_outlet *outlet;
    struct gate *gate;
    struct holder *holder; /* whose sessions it sees */
    enum mcp_era era;
    const char *version; /* of the protocol */
    json_t *id;          /* a text or an integer */
    const char *method;
    json_t *params;         /* an object, never NULL */
    json_t *progress_token; /* NULL: nobody wants to hear how it goes on */
    void (*abandon)(void *work);
    void *work;
};

/* Who works for it: told once when the answer is not wanted any more. */
void mcp_work(struct mcp_call *c, void (*abandon)(void *work), void *work);
/* Its answer. `result` is taken over; what every result of the era has (resultType, server information) is added.
 * The call is gone. */
void mcp_result(struct mcp_call *c, json_t *result);
/* The same with an error; `data` (or NULL) is taken over. */
void mcp_error(struct mcp_call *c, int code, json_t *data, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A notification that belongs to it; `params` is taken over. */
void mcp_notify(struct mcp_call *c, const char *method, json_t *params);
/* "notifications/progress" with what was written meanwhile; nothing where nobody asked for it. */
void mcp_progress(struct mcp_call *c, double progress, const char *message);

/* A method's own part; it answers now or later. */
void mcp_tools_list(struct mcp_call *c);
void mcp_tools_call(struct mcp_call *c);
void mcp_resources_list(struct mcp_call *c);
void mcp_resources_templates(struct mcp_call *c);
void mcp_resources_read(struct mcp_call *c);

/* A tool, for tools.c and for a build that adds its own (tests/mcp). */
struct mcp_tool {
    const char *name;
    void (*run)(struct mcp_call *c, const json_t *arguments);
};
