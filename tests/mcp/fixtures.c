/* fixtures: what is added to retort's own methods: see fixtures.h. */
#include "fixtures.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char fixtures_json[];
extern const size_t fixtures_json_len;

#define TEMPLATE_BEFORE "test://template/"
#define TEMPLATE_BEHIND "/data"

static json_t *all(void)
{
    static json_t *loaded;

    if (!loaded)
        loaded = json_loadb(fixtures_json, fixtures_json_len, 0, NULL);
    if (!loaded)
        bug("fixtures.json is not JSON");
    return loaded;
}

json_t *fixture(const char *part, const char *name)
{
    json_t *j = json_object_get(all(), part);

    return name ? json_object_get(j, name) : j;
}

void fixture_text(struct mcp_call *c, const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        bug("out of memory");
    va_end(ap);
    mcp_result(c, json_pack("{s:[{s:s,s:s}]}", "content", "type", "text", "text", text));
    free(text);
}

void fixture_ask(struct mcp_call *c, const char *name, json_t *kept)
{
    mcp_ask(c, json_deep_copy(fixture("asks", name)), kept);
}

/* ---- resources ---- */

static json_t *from_template(const char *uri)
{
    size_t before = strlen(TEMPLATE_BEFORE), behind = strlen(TEMPLATE_BEHIND), len = strlen(uri);

    if (len <= before + behind || strncmp(uri, TEMPLATE_BEFORE, before) != 0 ||
        strcmp(uri + len - behind, TEMPLATE_BEHIND) != 0)
        return NULL;
    int n = (int)(len - before - behind);
    const char *id = uri + before;
    return json_pack(
        "{s:s,s:s,s:o}", "uri", uri, "mimeType", "application/json", "text",
        json_sprintf("{\"id\":\"%.*s\",\"templateTest\":true,\"data\":\"Data for ID: %.*s\"}", n,
                     id, n, id));
}

static void read_resource(struct mcp_call *c)
{
    const char *uri = json_string_value(json_object_get(c->params, "uri"));
    json_t *content = uri ? json_incref(fixture("contents", uri)) : NULL;

    if (uri && !content)
        content = from_template(uri);
    if (content)
        mcp_result(c, json_pack("{s:[o]}", "contents", content));
    else
        mcp_resources_read(c);
}

/* ---- the rest ---- */

static void complete(struct mcp_call *c)
{
    mcp_result(c, json_pack("{s:{s:[],s:b}}", "completion", "values", "hasMore", 0));
}

static void extend(json_t *result, const char *list, const char *part)
{
    if (!json_object_get(result, "nextCursor"))
        json_array_extend(json_object_get(result, list), fixture(part, NULL));
}

static void add(const struct mcp_call *c, json_t *result)
{
    if (strcmp(c->method, "tools/list") == 0)
        extend(result, "tools", "tools");
    else if (strcmp(c->method, "resources/list") == 0)
        extend(result, "resources", "resources");
    else if (strcmp(c->method, "resources/templates/list") == 0)
        extend(result, "resourceTemplates", "templates");
}

static void add_capabilities(json_t *capabilities)
{
    json_object_set_new(capabilities, "tools", json_pack("{s:b}", "listChanged", 1));
    json_object_set_new(capabilities, "prompts", json_pack("{s:b}", "listChanged", 1));
    json_object_set_new(capabilities, "logging", json_object());
}

static const json_t *tool_described(const char *name)
{
    json_t *tool;
    size_t i;

    json_array_foreach(fixture("tools", NULL), i, tool)
    {
        if (strcmp(json_string_value(json_object_get(tool, "name")), name) == 0)
            return tool;
    }
    return NULL;
}

static const struct mcp_method methods[] = {
    {"tools/call", MCP_BOTH_ERAS, fixture_tool, "name", true, -1},
    {"prompts/list", MCP_BOTH_ERAS, fixture_prompts, NULL, false, 1000},
    {"prompts/get", MCP_BOTH_ERAS, fixture_prompt, "name", true, -1},
    {"resources/read", MCP_BOTH_ERAS, read_resource, "uri", true, 0},
    {"completion/complete", MCP_BOTH_ERAS, complete, NULL, false, -1},
    {0},
};

static const struct mcp_extras extras = {methods, add, add_capabilities, tool_described};

__attribute__((constructor)) static void begin(void)
{
    mcp_extras = &extras;
}
