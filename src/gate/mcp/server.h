/* server: what the gate needs of MCP: its beginning and its end, its time, its calls. */
#pragma once

#include "gate/inside.h"

void mcp_open(struct gate *g);
void mcp_close(struct gate *g);
/* What is due; when the next thing is. */
int64_t mcp_tick(struct gate *g, int64_t now_ms);
/* Streams that would never end by themselves end now. */
void mcp_drain(struct gate *g);
/* Does this token (NULL: any) have something open here? And its end, when it is not valid any more. */
bool mcp_has(const struct gate *g, const struct holder *h);
void mcp_end_of(struct gate *g, const struct holder *h);

/* ---- over HTTP (transport_http.c) ---- */

void call_mcp_post(struct request *r);
void call_mcp_get(struct request *r);
void call_mcp_delete(struct request *r);
int64_t mcp_http_tick(int64_t now_ms);

/* ---- on standard input and output (transport_stdio.c) ---- */

/* Speak with who holds the other ends, in the name of this token. The descriptors stay the caller's. */
void mcp_stdio_open(struct gate *g, struct holder *h, int in_fd, int out_fd);
void mcp_stdio_close(struct gate *g);
/* Once in each turn of the loop: is there something to be done at once? */
bool mcp_stdio_turn(struct gate *g);
/* The other side has left and all is said, or nobody listens: it is time to leave. */
bool mcp_stdio_is_over(const struct gate *g);
