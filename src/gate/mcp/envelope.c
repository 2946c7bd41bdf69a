/* envelope: what a modern request says of itself. Each stands alone: `_meta` has the version and what the client can
 * do, and over HTTP headers repeat the version, the method and some parameters, for balancers that do not read bodies.
 *
 * Whoever routes or refuses by headers must be able to rely on them, so a request whose headers say something else
 * than its body is refused, and so is one that has a header twice. The order of the checks is what clients know from
 * other servers: version, envelope, headers, then the method.
 */
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/mcp/protocol.h"
#include "gate/syntax.h"
#include "session/utf8.h"

#define H_VERSION "MCP-Protocol-Version"
#define H_METHOD "Mcp-Method"
#define H_NAME "Mcp-Name"
#define H_PARAM "Mcp-Param-"
#define ENCODED "=?base64?"
#define ENCODED_END "?="
#define HEADER_NAME_LONGEST 64

bool envelope_is_modern(const struct rpc *m, const char *version)
{
    const json_t *meta = json_object_get(m->params, "_meta");

    return json_object_get(meta, META_VERSION) ||
           (version && strcmp(version, MCP_MODERN_VERSION) == 0);
}

/* ---- values ---- */

/* Strict: what two decoders read in two ways is none. NULL: it cannot be decoded. */
static char *decoded(const char *text, size_t len)
{
    struct base64_decode_ctx ctx;
    char *ret = xcalloc(1, BASE64_DECODE_LENGTH(len) + 1);
    size_t n = BASE64_DECODE_LENGTH(len);
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789+/=";

    base64_decode_init(&ctx);
    if (strspn(text, alphabet) < len ||
        !base64_decode_update(&ctx, &n, (uint8_t *)ret, len, text) || !base64_decode_final(&ctx) ||
        strlen(ret) != n || utf8_valid(ret, n) != n) {
        free(ret);
        return NULL;
    }
    return ret;
}

bool envelope_same(const char *header, const char *text)
{
    const size_t before = strlen(ENCODED), behind = strlen(ENCODED_END);
    const char *at = syntax_blanks(header);
    size_t len = strlen(at);

    while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
        len--;
    if (len < before + behind || strncmp(at, ENCODED, before) != 0 ||
        strncmp(at + len - behind, ENCODED_END, behind) != 0)
        return len == strlen(text) && memcmp(at, text, len) == 0;
    cleanup_free char *value = decoded(at + before, len - before - behind);
    return value && strcmp(value, text) == 0;
}

/* A value as it is in a header; NULL: one of its type cannot be there. */
static const char *as_text(const json_t *value, char number[32])
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (!json_is_integer(value))
        return NULL;
    snprintf(number, 32, "%lld", (long long)json_integer_value(value));
    return number;
}

/* ---- headers ---- */

static int mismatch(struct mcp_fault *f, const char *name, const char *what)
{
    return mcp_fault_set(f, MCP_HEADER_MISMATCH, "the header \"%.80s\" %s", name, what);
}

/* `text`: what the body says; NULL: nothing. */
static int check_header(const struct mcp_headers *h, const char *name, const char *text,
                        struct mcp_fault *f)
{
    unsigned n = 0;
    const char *value = h->get(h->ctx, name, &n);

    if (n > 1)
        return mismatch(f, name, "is there more than once");
    if (value && !text)
        return mismatch(f, name, "is there, and the body has nothing of the kind");
    if (!value && text)
        return mismatch(f, name, "is missing");
    return !value || envelope_same(value, text) ? 0
                                                : mismatch(f, name, "does not agree with the body");
}

static int check_version(const json_t *version, const struct mcp_headers *h, struct mcp_fault *f)
{
    const char *text = json_string_value(version);
    unsigned n = 0;
    const char *header = h ? h->get(h->ctx, H_VERSION, &n) : NULL;

    if (!text)
        return mcp_fault_set(f, MCP_INVALID_PARAMS,
                             "\"_meta\" must have \"" META_VERSION "\", a text");
    if (n > 1 || (header && !envelope_same(header, text)))
        return mismatch(f, H_VERSION, "does not agree with the body");
    if (strcmp(text, MCP_MODERN_VERSION) == 0)
        return 0;
    json_t *supported = json_pack("[s]", MCP_MODERN_VERSION);
    for (unsigned i = 0; mcp_legacy_versions[i]; i++)
        json_array_append_new(supported, json_string(mcp_legacy_versions[i]));
    f->data = json_pack("{s:o,s:s}", "supported", supported, "requested", text);
    return mcp_fault_set(f, MCP_NO_VERSION, "this version of the protocol is not spoken here");
}

static int check_names(const struct rpc *m, const struct mcp_headers *h, struct mcp_fault *f)
{
    const struct mcp_method *how = mcp_method_find(m->method, MCP_MODERN);

    if (check_header(h, H_VERSION, MCP_MODERN_VERSION, f) < 0 ||
        check_header(h, H_METHOD, m->method, f) < 0)
        return -1;
    if (!how || !how->named_by)
        return 0;
    return check_header(h, H_NAME, json_string_value(json_object_get(m->params, how->named_by)), f);
}

int envelope_check(const struct rpc *m, const struct mcp_headers *h, struct mcp_fault *f)
{
    const json_t *meta = json_object_get(m->params, "_meta");

    if (check_version(json_object_get(meta, META_VERSION), h, f) < 0)
        return -1;
    if (!json_is_object(json_object_get(meta, META_CAPABILITIES)))
        return mcp_fault_set(f, MCP_INVALID_PARAMS,
                             "\"_meta\" must have \"" META_CAPABILITIES "\", an object");
    return h ? check_names(m, h, f) : 0;
}

int envelope_check_arguments(const json_t *params, const struct mcp_headers *h, struct mcp_fault *f)
{
    const char *tool = json_string_value(json_object_get(params, "name")), *key;
    const json_t *arguments = json_object_get(params, "arguments");
    char name[sizeof(H_PARAM) + HEADER_NAME_LONGEST], number[32];
    json_t *property;

    const json_t *described = tool ? mcp_tool_described(tool) : NULL;
    if (!described && tool && mcp_extras && mcp_extras->tool_described)
        described = mcp_extras->tool_described(tool);
    const json_t *schema = json_object_get(described, "inputSchema");
    json_object_foreach(json_object_get(schema, "properties"), key, property)
    {
        const char *header = json_string_value(json_object_get(property, "x-mcp-header"));
        if (!header)
            continue;
        snprintf(name, sizeof(name), H_PARAM "%.*s", HEADER_NAME_LONGEST, header);
        if (check_header(h, name, as_text(json_object_get(arguments, key), number), f) < 0)
            return -1;
    }
    return 0;
}
