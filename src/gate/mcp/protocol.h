/* protocol: what the files of MCP share that carry messages: rpc, peers, calls, envelopes, transports. Tools and
 * resources do not include it.
 */
#pragma once

#include "gate/mcp/mcp.h"

/* What is wrong with a message, as it is told to who sent it. */
struct mcp_fault {
    int code;
    json_t *data; /* or NULL */
    char text[256];
};
/* Returns -1. */
int mcp_fault_set(struct mcp_fault *f, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- messages (rpc.c) ---- */

#define RPC_MESSAGE_MAX (40u << 20)
#define RPC_ID_LONGEST 256

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

/* All of it lies in the message. */
struct rpc {
    enum rpc_kind kind;
    json_t *id; /* NULL: it has none that can be named */
    const char *method;
    json_t *params;         /* an object, or NULL */
    json_t *result, *error; /* of a response: one of them */
};

/* One message, or a batch of them. NULL: the fault says why not. */
json_t *rpc_parse(const char *text, size_t len, struct mcp_fault *f);
/* What one message is. -1: nothing that there is; ret->id is still there where it has one. */
int rpc_read(json_t *message, struct rpc *ret, struct mcp_fault *f);
/* Something that clients name things by, and that is sent back to them: a whole number, or a short text. */
bool rpc_is_id(const json_t *id);

/* Messages of ours. `id` (or NULL) stays the caller's; the others are taken over. */
json_t *rpc_result(json_t *id, json_t *result);
json_t *rpc_error(json_t *id, int code, json_t *data, const char *text);
json_t *rpc_fault(json_t *id, struct mcp_fault *f);
json_t *rpc_notification(const char *method, json_t *params);
json_t *rpc_request(json_int_t id, const char *method, json_t *params);

/* ---- calls (call.c) ---- */

/* Fill in what is the same for all transports. The message may go afterwards. */
void mcp_call_fill(struct mcp_call *c, const struct rpc *m);
/* Nobody wants the answer: whoever works for it is told, and it is gone. */
void mcp_call_abandon(struct mcp_call *c);
void mcp_call_fault(struct mcp_call *c, struct mcp_fault *f);

/* ---- the modern protocol's requests (envelope.c) ---- */

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_LOG_LEVEL "io.modelcontextprotocol/logLevel"
#define META_SERVER "io.modelcontextprotocol/serverInfo"
#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* Headers of HTTP; the first of that name, or NULL, and how many there are. */
struct mcp_headers {
    const char *(*get)(void *ctx, const char *name, unsigned *ret_count);
    void *ctx;
};

/* Does it say that it is a modern one? `version` is the header's, or NULL. */
bool envelope_is_modern(const struct rpc *m, const char *version);
/* Is it whole, and do the headers (NULL: there are none here) say the same as the body? */
int envelope_check(const struct rpc *m, const struct mcp_headers *h, struct mcp_fault *f);
/* The same for the arguments of a tool that clients repeat in headers. */
int envelope_check_arguments(const json_t *params, const struct mcp_headers *h,
                             struct mcp_fault *f);
/* Does a header's value, which may be encoded, say this text? */
bool envelope_same(const char *header, const char *text);

/* ---- methods (methods.c) ---- */

/* NULL: there is none in this era. */
const struct mcp_method *mcp_method_find(const char *name, enum mcp_era era);
/* A request that was filled in: check it, and have its method answer it. The call may be gone afterwards. */
void mcp_start(struct mcp_call *c, const struct rpc *m, const struct mcp_headers *h);
json_t *mcp_server_info(void);
bool mcp_can(const char *what, const char *how); /* of the server's capabilities */

/* ---- peers (peer.c) ---- */

#define PEERS_OF_TOKEN 64
#define PEER_CALLS 64
#define PEER_IDLE_MS (24 * 3600 * 1000ll)

/* How a transport reaches one. */
struct mcp_line {
    /* A message that belongs to no call; taken over. It may get lost. */
    void (*send)(struct mcp_peer *p, json_t *message);
    /* It is about to be freed. */
    void (*closed)(struct mcp_peer *p);
};

struct mcp_peer {
    struct mcp_peer *next;
    struct gate *gate;
    struct holder *holder;
    const struct mcp_line *line;
    void *carrier; /* the line's own */
    char id[SESSION_ID_MAX];
    const char *version; /* that was agreed upon; NULL: none yet */
    json_t *capabilities;
    int level;             /* of log messages that it wants */
    json_t *subscriptions; /* URIs: members of an object */
    struct mcp_call *calls;
    unsigned n_calls;
    struct mcp_round *rounds;
    json_int_t asked; /* ids of our own requests, counted */
    int64_t active_ms;
};

struct mcp_peer *peer_new(struct gate *g, struct holder *h, const struct mcp_line *line);
/* Of this token and no other; NULL: there is none. */
struct mcp_peer *peer_find(struct gate *g, const struct holder *h, const char *id);
void peer_touch(struct mcp_peer *p);
/* With all that is under way for it. */
void peer_end(struct mcp_peer *p);
/* One more call: not where its id is taken or there are too many. */
int peer_add_call(struct mcp_peer *p, struct mcp_call *c, struct mcp_fault *f);
void peer_remove_call(struct mcp_call *c);
void peer_take_notification(struct mcp_peer *p, const struct rpc *m);

/* ---- rounds (rounds.c) ---- */

/* The answers that a modern request brings, and what was kept. -1: they are not what we asked for. */
int rounds_open(struct mcp_call *c, struct mcp_fault *f);
/* An answer to one of our requests. */
void rounds_take_response(struct mcp_peer *p, const struct rpc *m);
/* Its call is over. */
void rounds_forget(struct mcp_call *c);
/* No answer will come any more: whoever waits for one is told. */
void rounds_end(struct mcp_peer *p);
/* What is kept, sealed for who asked for what; and opened. */
char *rounds_seal(const struct mcp_call *c, const json_t *kept, int64_t now_ms);
json_t *rounds_unseal(const struct mcp_call *c, const char *state, int64_t now_ms);

/* ---- changes (listen.c) ---- */

void mcp_listen(struct mcp_call *c);
void mcp_subscribe(struct mcp_call *c);
void mcp_unsubscribe(struct mcp_call *c);
/* Streams of changes end: of this token, or of all. */
void listen_end(struct gate *g, const struct holder *h);
int mcp_level(const char *name); /* of the log; -1: there is no such level */

/* ---- the server (peer.c) ---- */

struct mcp_server {
    struct mcp_peer *peers;
    struct listener *listeners;
    struct mcp_stdio *stdio; /* NULL: HTTP */
    uint8_t key[32];         /* seals what clients keep for us */
};
