/* stubs: in the place of tools and resources until they are there. */
#include "gate/mcp/protocol.h"

void mcp_tools_list(struct mcp_call *c)
{
    mcp_result(c, json_pack("{s:[]}", "tools"));
}

void mcp_tools_call(struct mcp_call *c)
{
    mcp_error(c, MCP_INVALID_PARAMS, NULL, "there is no such tool");
}

void mcp_resources_list(struct mcp_call *c)
{
    mcp_result(c, json_pack("{s:[]}", "resources"));
}

void mcp_resources_templates(struct mcp_call *c)
{
    mcp_result(c, json_pack("{s:[]}", "resourceTemplates"));
}

void mcp_resources_read(struct mcp_call *c)
{
    mcp_error(c, c->era == MCP_MODERN ? MCP_INVALID_PARAMS : -32002,
              json_pack("{s:O*}", "uri", json_object_get(c->params, "uri")),
              "there is no such resource");
}

const json_t *mcp_tool_described(const char *name)
{
    (void)name;
    return NULL;
}

void mcp_uri_add(struct buf *to, const char *session, const char *path)
{
    buf_add_fmt(to, "retort://%s/%s", session, path);
}
