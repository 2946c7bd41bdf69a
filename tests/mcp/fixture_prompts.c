/* fixture_prompts: prompts, of which retort itself has none. */
#include <string.h>

#include "fixtures.h"

void fixture_prompts(struct mcp_call *c)
{
    mcp_result(c, json_pack("{s:O}", "prompts", fixture("prompts", NULL)));
}

static json_t *message(json_t *content)
{
    return json_pack("{s:s,s:o}", "role", "user", "content", content);
}

static json_t *text(const char *words)
{
    return message(json_pack("{s:s,s:s}", "type", "text", "text", words));
}

static void answer(struct mcp_call *c, json_t *messages)
{
    mcp_result(c, json_pack("{s:o}", "messages", messages));
}

static void simple(struct mcp_call *c)
{
    answer(c, json_pack("[o]", text("This is a simple prompt for testing.")));
}

static const char *argument(const struct mcp_call *c, const char *name)
{
    const char *value =
        json_string_value(json_object_get(json_object_get(c->params, "arguments"), name));

    return value ? value : "";
}

static void with_arguments(struct mcp_call *c)
{
    cleanup_free char *words = xasprintf("Prompt with arguments: arg1='%s', arg2='%s'",
                                         argument(c, "arg1"), argument(c, "arg2"));

    answer(c, json_pack("[o]", text(words)));
}

static void with_resource(struct mcp_call *c)
{
    json_t *resource = json_pack("{s:s,s:{s:s,s:s,s:s}}", "type", "resource", "resource", "uri",
                                 argument(c, "resourceUri"), "mimeType", "text/plain", "text",
                                 "Embedded resource content for testing.");

    answer(c, json_pack("[o,o]", message(resource),
                        text("Please process the embedded resource above.")));
}

static void with_image(struct mcp_call *c)
{
    json_t *image = json_pack("{s:s,s:O,s:s}", "type", "image", "data", fixture("png", NULL),
                              "mimeType", "image/png");

    answer(c, json_pack("[o,o]", message(image), text("Please analyze the image above.")));
}

static void with_input(struct mcp_call *c)
{
    const json_t *given = json_object_get(mcp_answered(c, "user_context"), "content");
    const char *context = json_string_value(json_object_get(given, "context"));

    if (context)
        answer(c, json_pack("[o]", text(context)));
    else
        fixture_ask(c, "test_input_required_result_prompt", NULL);
}

void fixture_prompt(struct mcp_call *c)
{
    static const struct {
        const char *name;
        void (*run)(struct mcp_call *c);
    } prompts[] = {
        {"test_simple_prompt", simple},
        {"test_prompt_with_arguments", with_arguments},
        {"test_prompt_with_embedded_resource", with_resource},
        {"test_prompt_with_image", with_image},
        {"test_input_required_result_prompt", with_input},
    };
    const char *name = json_string_value(json_object_get(c->params, "name"));

    for (size_t i = 0; name && i < sizeof(prompts) / sizeof(*prompts); i++)
        if (strcmp(prompts[i].name, name) == 0) {
            prompts[i].run(c);
            return;
        }
    mcp_error(c, MCP_INVALID_PARAMS, NULL, "there is no such prompt");
}
