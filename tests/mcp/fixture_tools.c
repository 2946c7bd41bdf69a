/* fixture_tools: tools that do more than say what fixtures.json has. */
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"

#define INPUT "test_input_required_result_"

static const char *member(const json_t *object, const char *a, const char *b)
{
    const char *text = json_string_value(json_object_get(json_object_get(object, a), b));

    return text ? text : "";
}

/* ---- before the answer ---- */

static void with_logging(struct mcp_call *c)
{
    mcp_log(c, "info", json_string("Tool execution started"));
    mcp_log(c, "info", json_string("Tool processing data"));
    mcp_log(c, "info", json_string("Tool execution completed"));
    fixture_text(c, "It was logged.");
}

static void with_progress(struct mcp_call *c)
{
    mcp_progress(c, 0, "begun");
    mcp_progress(c, 50, "half of it");
    mcp_progress(c, 100, "all of it");
    fixture_text(c, "It is done.");
}

static void tools_changed(struct mcp_call *c)
{
    mcp_list_changed(c->gate, c->holder, "tools");
    fixture_text(c, "They were told.");
}

static void prompts_changed(struct mcp_call *c)
{
    mcp_list_changed(c->gate, c->holder, "prompts");
    fixture_text(c, "They were told.");
}

static void missing_capability(struct mcp_call *c)
{
    if (mcp_client_can(c, "sampling"))
        fixture_text(c, "The client can sample.");
    else
        mcp_error(c, MCP_NO_CAPABILITY, json_pack("{s:{s:{}}}", "requiredCapabilities", "sampling"),
                  "this needs a client that can sample");
}

/* ---- asking ---- */

static void ask_one(struct mcp_call *c, const char *method, json_t *params)
{
    mcp_ask(c, json_pack("{s:{s:s,s:o}}", "answer", "method", method, "params", params), NULL);
}

static const char *argument(const struct mcp_call *c, const char *name)
{
    return member(c->params, "arguments", name);
}

static void sampling(struct mcp_call *c)
{
    const json_t *answer = mcp_answered(c, "answer");

    if (answer)
        fixture_text(c, "LLM response: %s", member(answer, "content", "text"));
    else
        ask_one(c, "sampling/createMessage",
                json_pack("{s:[{s:s,s:{s:s,s:s}}],s:i}", "messages", "role", "user", "content",
                          "type", "text", "text", argument(c, "prompt"), "maxTokens", 100));
}

static void tell_answer(struct mcp_call *c, const char *what, const json_t *answer)
{
    cleanup_free char *content = json_object_get(answer, "content")
                                     ? json_text(json_object_get(answer, "content"))
                                     : xstrdup("{}");
    const char *action = json_string_value(json_object_get(answer, "action"));

    fixture_text(c, "%s: action=%s, content=%s", what, action ? action : "", content);
}

static void elicitation(struct mcp_call *c)
{
    const json_t *answer = mcp_answered(c, "answer");

    if (answer)
        tell_answer(c, "User response", answer);
    else
        ask_one(c, "elicitation/create",
                json_pack("{s:s,s:{s:s,s:{s:{s:s,s:s},s:{s:s,s:s}},s:[s,s]}}", "message",
                          argument(c, "message"), "requestedSchema", "type", "object", "properties",
                          "username", "type", "string", "description", "User's response", "email",
                          "type", "string", "description", "User's email address", "required",
                          "username", "email"));
}

/* Asks what fixtures.json has under its own name, and tells the answer. */
static void plainly_asked(struct mcp_call *c)
{
    const char *name = json_string_value(json_object_get(c->params, "name"));
    const json_t *answer = mcp_answered(c, "answer");

    if (answer)
        tell_answer(c, "Elicitation completed", answer);
    else
        fixture_ask(c, name, NULL);
}

static void asked_for_name(struct mcp_call *c)
{
    const json_t *answer = mcp_answered(c, "user_name");

    if (answer)
        fixture_text(c, "Hello, %s!", member(answer, "content", "name"));
    else
        fixture_ask(c, INPUT "elicitation", NULL);
}

static void asked_for_sample(struct mcp_call *c)
{
    const json_t *answer = mcp_answered(c, "capital_question");

    if (answer)
        fixture_text(c, "The model says: %s", member(answer, "content", "text"));
    else
        fixture_ask(c, INPUT "sampling", NULL);
}

static void asked_for_roots(struct mcp_call *c)
{
    const json_t *answer = mcp_answered(c, "client_roots");

    if (answer)
        fixture_text(c, "%zu roots", json_array_size(json_object_get(answer, "roots")));
    else
        fixture_ask(c, INPUT "list_roots", NULL);
}

static void with_state(struct mcp_call *c)
{
    const char *name = json_string_value(json_object_get(c->params, "name"));

    if (mcp_answered(c, "confirm") && mcp_kept(c))
        fixture_text(c, "state-ok");
    else
        fixture_ask(c, name, json_string("confirming"));
}

static void three_at_once(struct mcp_call *c)
{
    if (mcp_answered(c, "user_name") && mcp_answered(c, "greeting") &&
        mcp_answered(c, "client_roots") && mcp_kept(c))
        fixture_text(c, "All three are there.");
    else
        fixture_ask(c, INPUT "multiple_inputs", json_string("three"));
}

static void two_rounds(struct mcp_call *c)
{
    const char *name = json_string_value(json_object_get(mcp_kept(c), "name"));

    if (name && mcp_answered(c, "step2"))
        fixture_text(c, "%s likes %s.", name, member(mcp_answered(c, "step2"), "content", "color"));
    else if (mcp_kept(c) && mcp_answered(c, "step1"))
        fixture_ask(
            c, "second_round",
            json_pack("{s:s}", "name", member(mcp_answered(c, "step1"), "content", "name")));
    else
        fixture_ask(c, INPUT "multi_round", json_object());
}

static void as_client_can(struct mcp_call *c)
{
    json_t *asks = json_deep_copy(fixture("asks", INPUT "capabilities"));

    if (mcp_answered(c, "elicitation") || mcp_answered(c, "sampling")) {
        json_decref(asks);
        fixture_text(c, "It was answered.");
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        const char *what = i ? "sampling" : "elicitation";
        if (!mcp_client_can(c, what))
            json_object_del(asks, what);
    }
    mcp_ask(c, asks, NULL);
}

static const struct {
    const char *name;
    void (*run)(struct mcp_call *c);
} tools[] = {
    {"test_tool_with_logging", with_logging},
    {"test_logging_tool", with_logging},
    {"test_tool_with_progress", with_progress},
    {"test_sampling", sampling},
    {"test_elicitation", elicitation},
    {"test_elicitation_sep1034_defaults", plainly_asked},
    {"test_elicitation_sep1330_enums", plainly_asked},
    {"test_streaming_elicitation", plainly_asked},
    {"test_missing_capability", missing_capability},
    {"test_trigger_tool_change", tools_changed},
    {"test_trigger_prompt_change", prompts_changed},
    {INPUT "elicitation", asked_for_name},
    {INPUT "sampling", asked_for_sample},
    {INPUT "list_roots", asked_for_roots},
    {INPUT "request_state", with_state},
    {INPUT "tampered_state", with_state},
    {INPUT "multiple_inputs", three_at_once},
    {INPUT "multi_round", two_rounds},
    {INPUT "capabilities", as_client_can},
};

void fixture_tool(struct mcp_call *c)
{
    const char *name = json_string_value(json_object_get(c->params, "name"));
    json_t *said = name ? fixture("results", name) : NULL;

    if (said) {
        mcp_result(c, json_deep_copy(said));
        return;
    }
    for (size_t i = 0; name && i < sizeof(tools) / sizeof(*tools); i++)
        if (strcmp(tools[i].name, name) == 0) {
            tools[i].run(c);
            return;
        }
    mcp_tools_call(c);
}
