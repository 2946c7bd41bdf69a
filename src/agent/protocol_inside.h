/* protocol_inside: what the protocols share; nobody else includes it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/protocol.h"
#include "agent/reply.h"

/* ---- reading what may be of any type ---- */

/* A member that is text, or "". */
const char *member_text(const json_t *j, const char *member);
/* A member that is a number from 0 to PROTOCOL_NUMBER_MAX. */
#define PROTOCOL_NUMBER_MAX 1000000000
bool member_number(const json_t *j, const char *member, unsigned *ret);
/* A count of tokens; what is none is 0. */
uint64_t member_tokens(const json_t *j, const char *member);
/* Text, or any other JSON, of a member as more of a call's arguments. */
int take_arguments(struct reply *r, unsigned number, const json_t *arguments, struct err *e);
/* A string as more of the text; anything else is passed over. */
int take_text(struct reply *r, const json_t *text, struct err *e);
/* A part of text begins, which is not the first: it does not run into what was said before. */
int begin_text(struct reply *r, struct err *e);

/* The JSON of an event. NULL where nothing can be made of it.
 *
 * Broken UTF-8 is repaired. A server that cuts text into pieces of UTF-16 cuts characters in two, and writes
 * each half as an escape, "\ud83d" at the end of a string and "\ude00" at the start of one in the next event. Neither
 * is valid; the first is kept (reply.half) and put before the second. */
json_t *load_event(struct reply *r, const char *data, size_t len, struct err *e);

/* Keep a part of the message to be sent back: appends it to the array reply.raw. Takes it over. */
int keep_raw(struct reply *r, json_t *part, struct err *e);
/* Bytes that it takes in memory, more or less. */
size_t json_weight(const json_t *j);

/* Say what a server said of itself: -1. */
int server_failed(const json_t *body, struct err *e);
int not_understood(struct err *e);

/* ---- the tool ---- */

extern const char tool_description[];
/* JSON Schema of its arguments. */
json_t *tool_parameters(void);
