/* fixtures: what the official conformance suite calls by name, for a build of retort that is never installed. */
#pragma once

#include "gate/mcp/mcp.h"

/* A part of fixtures.json; borrowed. */
json_t *fixture(const char *part, const char *name);
/* A result with one text. */
void fixture_text(struct mcp_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ask what fixtures.json says under this name; `kept` is taken over, or NULL. */
void fixture_ask(struct mcp_call *c, const char *name, json_t *kept);

void fixture_tool(struct mcp_call *c);
void fixture_prompts(struct mcp_call *c);
void fixture_prompt(struct mcp_call *c);
