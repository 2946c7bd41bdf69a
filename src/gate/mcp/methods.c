/* methods: the table of what can be asked, in which era, and by whom it is answered. */
#include <string.h>

#include "base/clock.h"
#include "gate/mcp/protocol.h"

#define LEGACY (1u << MCP_LEGACY)
#define MODERN (1u << MCP_MODERN)
#define LONG_MS 3600000 /* what does not change while the server runs */
#define TEMPLATE "retort://{session}/{+path}"
#define COMPLETIONS_MAX 100

static const char instructions[] =
    "Python in a sealed box, without network. State stays in a session: run_python without "
    "\"session\" makes one and returns its id; give that id with every later call. Files that code "
    "writes to the current directory are resources of the session.";

const char *const mcp_legacy_versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", NULL};
const struct mcp_extras *mcp_extras;

/* ---- what there is ---- */

json_t *mcp_server_info(void)
{
    return json_pack("{s:s,s:s,s:s}", "name", "retort", "title", "retort: Python in a sealed box",
                     "version", RETORT_VERSION);
}

static json_t *capabilities(void)
{
    json_t *ret = json_pack("{s:{},s:{s:b,s:b},s:{}}", "tools", "resources", "subscribe", 1,
                            "listChanged", 1, "completions");

    if (mcp_extras && mcp_extras->add_capabilities)
        mcp_extras->add_capabilities(ret);
    return ret;
}

bool mcp_can(const char *what, const char *how)
{
    json_t *all = capabilities();
    bool can = json_is_true(json_object_get(json_object_get(all, what), how));

    json_decref(all);
    return can;
}

static void discover(struct mcp_call *c)
{
    json_t *versions = json_pack("[s]", MCP_MODERN_VERSION);

    for (unsigned i = 0; mcp_legacy_versions[i]; i++)
        json_array_append_new(versions, json_string(mcp_legacy_versions[i]));
    mcp_result(c, json_pack("{s:o,s:o,s:s}", "supportedVersions", versions, "capabilities",
                            capabilities(), "instructions", instructions));
}

/* ---- the older protocol's own ---- */

/* One that we do not know is answered with the newest that we do: the client says then whether it can. */
static const char *agreed(const char *wanted)
{
    for (unsigned i = 0; mcp_legacy_versions[i]; i++)
        if (strcmp(mcp_legacy_versions[i], wanted) == 0)
            return mcp_legacy_versions[i];
    return mcp_legacy_versions[0];
}

/* What is asked for later, and nothing else of it: it is kept for as long as the peer is there. */
static json_t *known_capabilities(const json_t *client)
{
    static const char *const names[] = {"elicitation", "sampling", "roots"};
    json_t *ret = json_object();

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (json_is_object(json_object_get(client, names[i])))
            json_object_set_new(ret, names[i], json_object());
    return ret;
}

static void initialize(struct mcp_call *c)
{
    const char *version = json_string_value(json_object_get(c->params, "protocolVersion"));
    json_t *client = json_object_get(c->params, "capabilities");
    struct mcp_peer *p = c->peer;

    if (!version || (client && !json_is_object(client))) {
        mcp_error(c, MCP_INVALID_PARAMS, NULL,
                  "\"protocolVersion\" must be a text, and \"capabilities\" an object");
        return;
    }
    p->version = c->version = agreed(version);
    json_decref(p->capabilities);
    p->capabilities = known_capabilities(client);
    mcp_result(c, json_pack("{s:s,s:o,s:o,s:s}", "protocolVersion", p->version, "capabilities",
                            capabilities(), "serverInfo", mcp_server_info(), "instructions",
                            instructions));
}

static void ping(struct mcp_call *c)
{
    mcp_result(c, json_object());
}

static void set_level(struct mcp_call *c)
{
    int level = mcp_level(json_string_value(json_object_get(c->params, "level")));

    if (level < 0) {
        mcp_error(c, MCP_INVALID_PARAMS, NULL,
                  "\"level\" must be one of \"debug\" to \"emergency\"");
        return;
    }
    c->peer->level = level;
    mcp_result(c, json_object());
}

/* ---- completion ---- */

static json_t *session_ids(const struct mcp_call *c, const char *begin)
{
    json_t *values = json_array();

    for (const struct live *l = c->gate->lives; l; l = l->next)
        if (l->holder == c->holder && l->open && !l->once && !l->ending &&
            strncmp(l->id, begin, strlen(begin)) == 0 && json_array_size(values) < COMPLETIONS_MAX)
            json_array_append_new(values, json_string(l->id));
    return values;
}

/* The one thing to complete is the session of a resource. */
static void complete(struct mcp_call *c)
{
    const json_t *ref = json_object_get(c->params, "ref");
    const json_t *argument = json_object_get(c->params, "argument");
    const char *uri = json_string_value(json_object_get(ref, "uri"));
    const char *name = json_string_value(json_object_get(argument, "name"));
    const char *value = json_string_value(json_object_get(argument, "value"));

    if (!uri || strcmp(uri, TEMPLATE) != 0 || !name || !value) {
        mcp_error(c, MCP_INVALID_PARAMS, NULL,
                  "only the arguments of the resource template \"" TEMPLATE "\" can be completed");
        return;
    }
    json_t *values = strcmp(name, "session") == 0 ? session_ids(c, value) : json_array();
    mcp_result(c, json_pack("{s:{s:o,s:b}}", "completion", "values", values, "hasMore", 0));
}

/* ---- the table ---- */

static const struct mcp_method methods[] = {
    {"server/discover", MODERN, discover, NULL, false, LONG_MS},
    {"initialize", LEGACY, initialize, NULL, false, -1},
    {"ping", LEGACY, ping, NULL, false, -1},
    {"logging/setLevel", LEGACY, set_level, NULL, false, -1},
    {"tools/list", MCP_BOTH_ERAS, mcp_tools_list, NULL, false, LONG_MS},
    {"tools/call", MCP_BOTH_ERAS, mcp_tools_call, "name", true, -1},
    {"resources/list", MCP_BOTH_ERAS, mcp_resources_list, NULL, false, 0},
    {"resources/templates/list", MCP_BOTH_ERAS, mcp_resources_templates, NULL, false, LONG_MS},
    {"resources/read", MCP_BOTH_ERAS, mcp_resources_read, "uri", true, 0},
    {"resources/subscribe", LEGACY, mcp_subscribe, NULL, false, -1},
    {"resources/unsubscribe", LEGACY, mcp_unsubscribe, NULL, false, -1},
    {"subscriptions/listen", MODERN, mcp_listen, NULL, false, -1},
    {"completion/complete", MCP_BOTH_ERAS, complete, NULL, false, -1},
    {0},
};

static const struct mcp_method *find_in(const struct mcp_method *list, const char *name,
                                        enum mcp_era era)
{
    for (; list && list->name; list++)
        if ((list->eras & 1u << era) && strcmp(list->name, name) == 0)
            return list;
    return NULL;
}

const struct mcp_method *mcp_method_find(const char *name, enum mcp_era era)
{
    const struct mcp_method *extra = mcp_extras ? find_in(mcp_extras->methods, name, era) : NULL;

    return extra ? extra : find_in(methods, name, era);
}

/* ---- the way of a request ---- */

/* A conversation of the older protocol begins with a greeting. */
static int check_greeting(const struct mcp_call *c, const struct rpc *m, struct mcp_fault *f)
{
    if (c->era == MCP_MODERN || c->peer->version || strcmp(m->method, "initialize") == 0 ||
        strcmp(m->method, "ping") == 0)
        return 0;
    return mcp_fault_set(
        f, MCP_INVALID_REQUEST,
        "\"initialize\" comes first; or give \"_meta\" as version " MCP_MODERN_VERSION " has it");
}

static int check(struct mcp_call *c, const struct rpc *m, const struct mcp_headers *h,
                 struct mcp_fault *f)
{
    if (c->era == MCP_MODERN && envelope_check(m, h, f) < 0)
        return -1;
    if (check_greeting(c, m, f) < 0)
        return -1;
    const struct mcp_method *how = mcp_method_find(m->method, c->era);
    if (!how)
        return mcp_fault_set(f, MCP_NO_METHOD, "there is no method \"%.100s\" here", m->method);
    c->how = how;
    c->method = how->name;
    if (c->era == MCP_MODERN && h && strcmp(how->name, "tools/call") == 0 &&
        envelope_check_arguments(c->params, h, f) < 0)
        return -1;
    return how->asks ? rounds_open(c, f) : 0;
}

void mcp_start(struct mcp_call *c, const struct rpc *m, const struct mcp_headers *h)
{
    struct mcp_peer *p = c->peer;
    struct mcp_fault f = {0};
    int r = check(c, m, h, &f);

    /* Only from here on it can be found by its id, and is one of those that are under way. */
    c->peer = NULL;
    if (r == 0 && p)
        r = peer_add_call(p, c, &f);
    if (r < 0)
        mcp_call_fault(c, &f);
    else
        c->how->run(c);
}
