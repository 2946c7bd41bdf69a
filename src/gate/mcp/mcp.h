/* mcp: what the files of the MCP server share. It is a dialect of the gate: every tool and resource is made of calls
 * of the gate's own API (gate/inner.h), so that sessions, quotas, the journal and the ends of things are the same.
 *
 *   rpc.c              a message: JSON-RPC, its bounds and errors
 *   call.c             a request that is being worked on, and its answer
 *   peer.c             who sends several of them: a session of the older protocol, or standard input
 *   methods.c          the table: which method, in which era, who answers
 *   envelope.c         what a modern request says of itself, in its body and in its headers
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
    MCP_BUSY = -32000, /* too much is under way already */
    MCP_HEADER_MISMATCH = -32020,
    MCP_NO_CAPABILITY = -32021,
    MCP_NO_VERSION = -32022,
};

struct mcp_call;
struct mcp_peer;

/* A method of the protocol, and who answers it. */
struct mcp_method {
    const char *name;
    unsigned eras; /* bits: 1 << era */
    void (*run)(struct mcp_call *c);
    const char *named_by; /* the parameter that clients repeat in the header "Mcp-Name", or NULL */
    bool asks;            /* it may ask for input: see mcp_ask */
    int ttl_ms;           /* how long its answer may be kept; -1: nothing is said about that */
};
#define MCP_BOTH_ERAS (1u << MCP_LEGACY | 1u << MCP_MODERN)

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
    const struct mcp_method *how;
    const json_t *meta;     /* `_meta` of its parameters, or NULL */
    struct mcp_peer *peer;  /* NULL: it stands alone */
    struct mcp_call *next;  /* of the peer */
    json_t *answers, *kept; /* of the round before; see mcp_ask */
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

/* ---- what a client is asked, in the middle of a call (rounds.c) ---- */

/* Has the client said that it can do this ("elicitation", "sampling", "roots")? */
bool mcp_client_can(const struct mcp_call *c, const char *capability);
/* Ask the client: `requests` is {key: {"method": …, "params": {…}}}; `kept` (or NULL) is any value that is to be there
 * when the answers are. Both are taken over. For whoever asks the call is over: its method is run again, as if for the
 * first time, with the answers. (In the modern protocol that is another request of the client's, which brings `kept`
 * back sealed; in the older one we send requests of our own.) Only of methods that ask. */
void mcp_ask(struct mcp_call *c, json_t *requests, json_t *kept);
/* What the client answered to the request of this key: an object, or NULL. */
const json_t *mcp_answered(const struct mcp_call *c, const char *key);
/* What was kept, or NULL. */
const json_t *mcp_kept(const struct mcp_call *c);

/* ---- who is told of changes (listen.c) ---- */

/* A cell or an upload did this to files of a session: `files` is a list of {"path", "change"} as a cell has it. */
void mcp_files_changed(struct gate *g, const struct holder *h, const char *session,
                       const json_t *files);
/* A list is not what it was: "tools", "prompts" or "resources". */
void mcp_list_changed(struct gate *g, const struct holder *h, const char *what);
/* A line of the log ("debug", "info", "warning", …) that belongs to a call, where its client wants to have it; `data`
 * is taken over. */
void mcp_log(struct mcp_call *c, const char *level, json_t *data);

/* ---- what the transports need of the tools ---- */

/* What clients see of a tool of this name: the object of tools/list; borrowed. NULL: there is none. */
const json_t *mcp_tool_described(const char *name);
/* Add the URI of a file as a resource. */
void mcp_uri_add(struct buf *to, const char *session, const char *path);

/* ---- what another build adds (tests/mcp); the one that is shipped adds nothing ---- */

struct mcp_extras {
    const struct mcp_method *methods; /* they go before our own; ends with a name of NULL */
    /* Add to the answer of one of ours. */
    void (*add)(const struct mcp_call *c, json_t *result);
    void (*add_capabilities)(json_t *capabilities);
    const json_t *(*tool_described)(const char *name);
};
extern const struct mcp_extras *mcp_extras;

/* A tool, for tools.c and for a build that adds its own (tests/mcp). */
struct mcp_tool {
    const char *name;
    void (*run)(struct mcp_call *c, const json_t *arguments);
};
