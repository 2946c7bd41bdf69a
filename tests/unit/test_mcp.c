/* Messages of MCP: what one is, what its headers must say, what is sealed for a client to keep, and who may have how
 * many sessions of the older protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gate/mcp/protocol.h"
#include "gate/mcp/server.h"

/* ---- messages ---- */

static int parse_code(const char *text, size_t len)
{
    struct mcp_fault f = {0};
    json_t *j = rpc_parse(text, len, &f);

    json_decref(j);
    return j ? 0 : f.code;
}

static void what_is_no_json_is_refused(void **state)
{
    static const char twice[] = "{\"id\":1,\"id\":2}", cut[] = "{\"id\":1",
                      nul[] = "{\"a\":\"\\u0000\"}";
    static const char bytes[] = "{\"a\":\"\xff\"}", high[] = "{\"a\":\"\\ud800\"}";
    (void)state;

    assert_int_equal(parse_code("{}", 2), 0);
    assert_int_equal(parse_code("", 0), MCP_PARSE_ERROR);
    assert_int_equal(parse_code("{}{}", 4), MCP_PARSE_ERROR);
    assert_int_equal(parse_code("{\0}", 3), MCP_PARSE_ERROR);
    assert_int_equal(parse_code(twice, strlen(twice)), MCP_PARSE_ERROR);
    assert_int_equal(parse_code(cut, strlen(cut)), MCP_PARSE_ERROR);
    assert_int_equal(parse_code(nul, strlen(nul)), MCP_PARSE_ERROR);
    assert_int_equal(parse_code(bytes, strlen(bytes)), MCP_PARSE_ERROR);
    assert_int_equal(parse_code(high, strlen(high)), MCP_PARSE_ERROR);
}

static void what_is_too_much_is_refused(void **state)
{
    cleanup_buf struct buf deep = {0}, many = {0}, quoted = {0};
    (void)state;

    for (unsigned i = 0; i < 65; i++)
        buf_add(&deep, "[", 1);
    for (unsigned i = 0; i < 65; i++)
        buf_add(&deep, "]", 1);
    buf_add(&many, "[0", 2);
    for (unsigned i = 0; i < 20001; i++)
        buf_add(&many, ",0", 2);
    buf_add(&many, "]", 1);
    buf_add_text(&quoted, "{\"a\":\"\\\"");
    for (unsigned i = 0; i < 100; i++)
        buf_add(&quoted, "[", 1);
    buf_add_text(&quoted, "\"}");
    assert_int_equal(parse_code(deep.data, deep.len), MCP_INVALID_REQUEST);
    assert_int_equal(parse_code(deep.data + 1, deep.len - 2), 0);
    assert_int_equal(parse_code(many.data, many.len), MCP_INVALID_REQUEST);
    assert_int_equal(parse_code(quoted.data, quoted.len), 0); /* brackets in a text are none */
}

static void a_message_is_one_of_three_things(void **state)
{
    static const struct {
        const char *text;
        int kind; /* -1: none */
        bool has_id;
    } cases[] = {
        {"{'jsonrpc':'2.0','id':1,'method':'a'}", RPC_REQUEST, true},
        {"{'jsonrpc':'2.0','id':'a','method':'a','params':{}}", RPC_REQUEST, true},
        {"{'jsonrpc':'2.0','id':9007199254740993,'method':'a'}", RPC_REQUEST, true},
        {"{'jsonrpc':'2.0','method':'a'}", RPC_NOTIFICATION, false},
        {"{'jsonrpc':'2.0','id':1,'result':{}}", RPC_RESPONSE, true},
        {"{'jsonrpc':'2.0','id':1,'error':{}}", RPC_RESPONSE, true},
        {"{'jsonrpc':'2.0','id':null,'error':{}}", RPC_RESPONSE, false},
        {"{'jsonrpc':'2.0','id':1,'result':{},'error':{}}", -1, true},
        {"{'jsonrpc':'2.0','id':1,'error':7}", -1, true},
        {"{'jsonrpc':'2.0','result':{}}", -1, false},
        {"{'jsonrpc':'2.0','id':1}", -1, true},
        {"{'jsonrpc':'1.0','id':1,'method':'a'}", -1, true},
        {"{'id':1,'method':'a'}", -1, true},
        {"{'jsonrpc':'2.0','id':1.5,'method':'a'}", -1, false},
        {"{'jsonrpc':'2.0','id':null,'method':'a'}", -1, false},
        {"{'jsonrpc':'2.0','id':{},'method':'a'}", -1, false},
        {"{'jsonrpc':'2.0','id':1,'method':7}", -1, true},
        {"{'jsonrpc':'2.0','id':1,'method':'a','params':[]}", -1, true},
        {"[]", -1, false},
        {"7", -1, false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        cleanup_free char *text = xstrdup(cases[i].text);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);
        struct mcp_fault f = {0};
        struct rpc m;
        int r = rpc_read(j, &m, &f);
        if (r != (cases[i].kind < 0 ? -1 : 0) || (r == 0 && (int)m.kind != cases[i].kind) ||
            (m.id != NULL) != cases[i].has_id || (r < 0 && f.code != MCP_INVALID_REQUEST))
            fail_msg("%s", text);
        json_decref(j);
    }
}

static void an_error_without_an_id_has_none(void **state)
{
    json_t *e = rpc_error(NULL, MCP_PARSE_ERROR, NULL, "x\xff");
    (void)state;

    assert_null(json_object_get(e, "id"));
    assert_null(json_object_get(json_object_get(e, "error"), "data"));
    json_decref(e);
}

/* ---- headers ---- */

static void a_header_may_be_encoded(void **state)
{
    static const char nothing[] = "=?base64?\x3f="; /* written as it is, it has a trigraph in it */
    (void)state;
    assert_true(envelope_same("Hello", "Hello"));
    assert_true(envelope_same(" \tHello ", "Hello"));
    assert_true(envelope_same("=?base64?SGVsbG8=?=", "Hello"));
    assert_true(envelope_same(nothing, ""));
    assert_true(envelope_same("SGVsbG8=", "SGVsbG8="));
    assert_true(envelope_same("=?base64?SGVsbG8=", "=?base64?SGVsbG8="));
    assert_true(envelope_same("=?base64?4oKs?=", "\xe2\x82\xac"));
    assert_false(envelope_same("hello", "Hello"));
    assert_false(envelope_same("=?base64?SGVsbG8?=", "Hello"));
    assert_false(envelope_same("=?base64?SGVs!!!bG8=?=", "Hello"));
    assert_false(envelope_same("=?base64?SGVs bG8=?=", "Hello"));
    assert_false(envelope_same("=?base64?SGVsbG8=?=", "=?base64?SGVsbG8=?="));
    assert_false(envelope_same("=?base64?SGVsbG8A?=", "Hello")); /* a NUL behind it */
    assert_false(envelope_same("=?base64?/w==?=", "\xff"));
}

/* Pairs of name and value; ends with NULL. */
static const char *get(void *ctx, const char *name, unsigned *ret_count)
{
    const char *const *at = ctx, *found = NULL;

    *ret_count = 0;
    for (; at[0]; at += 2)
        if (strcasecmp(at[0], name) == 0) {
            found = found ? found : at[1];
            (*ret_count)++;
        }
    return found;
}

#define META                                                                                       \
    "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                             \
    "'io.modelcontextprotocol/clientCapabilities':{}}"
#define VERSION "MCP-Protocol-Version", "2026-07-28"

/* The code of what is wrong, or 0. */
static int check(const char *method, const char *params, const char **headers)
{
    cleanup_free char *text = xstrdup(params);
    struct mcp_headers h = {get, headers};
    struct mcp_fault f = {0};

    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    struct rpc m = {.kind = RPC_REQUEST, .method = method, .params = j};
    int r = envelope_check(&m, headers ? &h : NULL, &f);
    if (r == 0 && headers)
        r = envelope_check_arguments(j, &h, &f);
    json_decref(f.data);
    json_decref(j);
    return r < 0 ? f.code : 0;
}
#define H(...) ((const char *[]){__VA_ARGS__, NULL})

static void headers_must_agree_with_the_body(void **state)
{
    static const char list[] = "{" META "}", call[] = "{'name':'a'," META "}";
    static const char other[] = "{'_meta':{'io.modelcontextprotocol/protocolVersion':'v9',"
                                "'io.modelcontextprotocol/clientCapabilities':{}}}";
    (void)state;

    assert_int_equal(check("tools/list", list, NULL), 0);
    assert_int_equal(check("tools/list", list, H(VERSION, "mcp-method", "tools/list")), 0);
    assert_int_equal(check("tools/list", list, H(VERSION)), MCP_HEADER_MISMATCH);
    assert_int_equal(check("tools/list", list, H(VERSION, "Mcp-Method", "TOOLS/LIST")),
                     MCP_HEADER_MISMATCH);
    assert_int_equal(check("tools/list", list, H("Mcp-Method", "tools/list")), MCP_HEADER_MISMATCH);
    assert_int_equal(
        check("tools/list", list, H(VERSION, "Mcp-Method", "tools/list", "Mcp-Method", "x")),
        MCP_HEADER_MISMATCH);
    assert_int_equal(check("tools/list", list, H(VERSION, VERSION, "Mcp-Method", "tools/list")),
                     MCP_HEADER_MISMATCH);
    assert_int_equal(check("tools/call", call, H(VERSION, "Mcp-Method", "tools/call")),
                     MCP_HEADER_MISMATCH);
    assert_int_equal(
        check("tools/call", call, H(VERSION, "Mcp-Method", "tools/call", "Mcp-Name", " a ")), 0);
    assert_int_equal(
        check("tools/call", call, H(VERSION, "Mcp-Method", "tools/call", "Mcp-Name", "b")),
        MCP_HEADER_MISMATCH);
    assert_int_equal(check("tools/list", other, H(VERSION)), MCP_HEADER_MISMATCH);
    assert_int_equal(check("tools/list", other, H("MCP-Protocol-Version", "v9")), MCP_NO_VERSION);
    assert_int_equal(check("tools/list", other, NULL), MCP_NO_VERSION);
}

static void an_envelope_must_be_whole(void **state)
{
    static const char *const broken[] = {
        "{}",
        "{'_meta':7}",
        "{'_meta':{'io.modelcontextprotocol/clientCapabilities':{}}}",
        "{'_meta':{'io.modelcontextprotocol/protocolVersion':7,"
        "'io.modelcontextprotocol/clientCapabilities':{}}}",
        "{'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}}",
        "{'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
        "'io.modelcontextprotocol/clientCapabilities':[]}}",
    };
    (void)state;

    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
        assert_int_equal(check("tools/list", broken[i], H(VERSION, "Mcp-Method", "tools/list")),
                         MCP_INVALID_PARAMS);
}

static void an_argument_that_is_repeated_must_agree(void **state)
{
#define CALL VERSION, "Mcp-Method", "tools/call", "Mcp-Name", "run_python"
    static const char with[] = "{'name':'run_python','arguments':{'session':'S'}," META "}";
    static const char without[] = "{'name':'run_python','arguments':{}," META "}";
    (void)state;

    assert_int_equal(check("tools/call", with, H(CALL, "Mcp-Param-Session", "S")), 0);
    assert_int_equal(check("tools/call", with, H(CALL, "mcp-param-session", "=?base64?Uw==?=")), 0);
    assert_int_equal(check("tools/call", without, H(CALL)), 0);
    assert_int_equal(check("tools/call", with, H(CALL)), MCP_HEADER_MISMATCH);
    assert_int_equal(check("tools/call", with, H(CALL, "Mcp-Param-Session", "T")),
                     MCP_HEADER_MISMATCH);
    assert_int_equal(check("tools/call", without, H(CALL, "Mcp-Param-Session", "S")),
                     MCP_HEADER_MISMATCH);
    assert_int_equal(
        check("tools/call", with, H(CALL, "Mcp-Param-Session", "S", "Mcp-Param-Session", "T")),
        MCP_HEADER_MISMATCH);
}

/* ---- what is sealed ---- */

static struct gate gate;
static struct holder ours = {.token = {.id = 1}}, theirs = {.token = {.id = 2}};
static const struct mcp_method tools_call = {.name = "tools/call", .asks = true};
static const struct mcp_method prompts_get = {.name = "prompts/get", .asks = true};

static int open_gate(void **state)
{
    (void)state;
    gate = (struct gate){0};
    mcp_open(&gate);
    return 0;
}

static int close_gate(void **state)
{
    (void)state;
    mcp_close(&gate);
    return 0;
}

static bool opens(struct holder *h, const struct mcp_method *how, const char *params,
                  const char *text, int64_t now_ms)
{
    json_t *p = json_loads(params, 0, NULL);
    struct mcp_call c = {.gate = &gate, .holder = h, .how = how, .params = p};
    json_t *kept = rounds_unseal(&c, text, now_ms);
    bool right = json_integer_value(kept) == 7;

    json_decref(kept);
    json_decref(p);
    return right;
}

static void what_is_sealed_is_for_one_request(void **state)
{
    static const char asked[] = "{\"name\":\"a\",\"arguments\":{\"x\":1,\"y\":2}}";
    static const char again[] = "{\"requestState\":\"…\",\"inputResponses\":{},\"_meta\":{},"
                                "\"arguments\":{\"y\":2,\"x\":1},\"name\":\"a\"}";
    json_t *params = json_loads(asked, 0, NULL), *seven = json_integer(7);
    struct mcp_call c = {.gate = &gate, .holder = &ours, .how = &tools_call, .params = params};
    cleanup_free char *s = rounds_seal(&c, seven, 1000), *t = rounds_seal(&c, seven, 1000);
    (void)state;

    assert_string_not_equal(s, t);
    assert_true(opens(&ours, &tools_call, asked, s, 1000));
    assert_true(opens(&ours, &tools_call, again, s, 1000));
    assert_false(opens(&theirs, &tools_call, asked, s, 1000));
    assert_false(opens(&ours, &prompts_get, asked, s, 1000));
    assert_false(
        opens(&ours, &tools_call, "{\"name\":\"b\",\"arguments\":{\"x\":1,\"y\":2}}", s, 1));
    assert_false(opens(&ours, &tools_call, "{\"name\":\"a\",\"arguments\":{\"x\":1}}", s, 1000));
    assert_false(opens(&ours, &tools_call, asked, s, 1000 + 600001));
    for (size_t i = 0; s[i]; i++) {
        char was = s[i];
        s[i] = was == 'A' ? 'B' : 'A';
        if (opens(&ours, &tools_call, asked, s, 1000))
            fail_msg("it can be changed at %zu", i);
        s[i] = was;
    }
    memset(gate.mcp->key, 0, sizeof(gate.mcp->key));
    assert_false(opens(&ours, &tools_call, asked, s, 1000));
    json_decref(params);
    json_decref(seven);
}

static void what_was_not_sealed_is_refused(void **state)
{
    static const char *const others[] = {"", ".", "a", "a.", ".a", "e30=.e30=", "....", "\n", "{}"};
    (void)state;

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_false(opens(&ours, &tools_call, "{}", others[i], 0));
}

/* ---- peers ---- */

static void closed(struct mcp_peer *p)
{
    (void)p;
}

static const struct mcp_line line = {.closed = closed};

static void a_token_has_a_bounded_number_of_sessions(void **state)
{
    struct mcp_peer *busy = peer_new(&gate, &ours, &line), *other = peer_new(&gate, &theirs, &line);
    char first[SESSION_ID_MAX] = "", id[SESSION_ID_MAX];
    unsigned n = 0;
    (void)state;

    busy->carrier = &gate; /* something of it is open */
    memcpy(id, busy->id, sizeof(id));
    for (unsigned i = 0; i < 3 * PEERS_OF_TOKEN; i++) {
        struct mcp_peer *p = peer_new(&gate, &ours, &line);
        p->active_ms = 1 + i; /* as time goes on */
        if (i == 0)
            memcpy(first, p->id, sizeof(first));
    }
    for (struct mcp_peer *p = gate.mcp->peers; p; p = p->next)
        n += p->holder == &ours;
    assert_int_equal(n, PEERS_OF_TOKEN);
    assert_null(peer_find(&gate, &ours, first));
    assert_ptr_equal(peer_find(&gate, &ours, id), busy);
    assert_ptr_equal(peer_find(&gate, &theirs, other->id), other);
    assert_null(peer_find(&gate, &ours, other->id)); /* another token's is not there */
}

/* ---- what is kept of what a peer says ---- */

static int code;
static bool has_token;

static void take_answer(struct mcp_call *c, json_t *message)
{
    code = (int)json_integer_value(json_object_get(json_object_get(message, "error"), "code"));
    has_token = c->progress_token != NULL;
    json_decref(message);
}

static void take_nothing(struct mcp_call *c)
{
    (void)c;
}

/* What came of it: 0, or the error. */
static int ask(struct mcp_peer *p, const char *method, json_t *params)
{
    static const struct mcp_outlet outlet = {.answer = take_answer, .free = take_nothing};
    json_t *message = rpc_request(1, method, params);
    struct mcp_call c = {.outlet = &outlet,
                         .gate = &gate,
                         .holder = &ours,
                         .era = MCP_LEGACY,
                         .version = p->version,
                         .peer = p};
    struct mcp_fault f = {0};
    struct rpc m;

    assert_int_equal(rpc_read(message, &m, &f), 0);
    mcp_call_fill(&c, &m);
    mcp_start(&c, &m, NULL);
    json_decref(message);
    return code;
}

static struct mcp_peer *greeted(json_t *capabilities)
{
    struct mcp_peer *p = peer_new(&gate, &ours, &line);

    assert_int_equal(
        ask(p, "initialize",
            json_pack("{s:s,s:o}", "protocolVersion", "2025-11-25", "capabilities", capabilities)),
        0);
    return p;
}

static void of_capabilities_only_those_that_matter_are_kept(void **state)
{
    struct mcp_peer *p = greeted(json_pack("{s:{s:s},s:[],s:{s:s}}", "elicitation", "a", "long",
                                           "roots", "experimental", "b", "long"));
    json_t *kept = json_pack("{s:{}}", "elicitation");
    (void)state;

    assert_true(json_equal(p->capabilities, kept));
    json_decref(kept);
}

static void subscriptions_are_bounded(void **state)
{
    struct mcp_peer *p = greeted(json_object());
    char uri[16001];
    unsigned n = 0;
    (void)state;

    memset(uri, 'a', sizeof(uri) - 1);
    uri[sizeof(uri) - 1] = '\0';
    for (int result = 0; result == 0 && n < 256; n++) {
        uri[0] = (char)('a' + n % 26);
        uri[1] = (char)('a' + n / 26);
        result = ask(p, "resources/subscribe", json_pack("{s:s}", "uri", uri));
    }
    assert_int_equal(code, MCP_BUSY);
    assert_in_range(n, 16, 18);
    uri[0] = uri[1] = 'a'; /* one that it has already */
    assert_int_equal(ask(p, "resources/subscribe", json_pack("{s:s}", "uri", uri)), 0);
    assert_int_equal(ask(p, "resources/unsubscribe", json_pack("{s:s}", "uri", uri)), 0);
    assert_int_equal(ask(p, "resources/subscribe", json_pack("{s:s}", "uri", "retort://s/p")), 0);
}

static void a_long_token_is_none(void **state)
{
    struct mcp_peer *p = greeted(json_object());
    char token[258];
    (void)state;

    memset(token, 'a', sizeof(token) - 1);
    token[sizeof(token) - 1] = '\0';
    ask(p, "ping", json_pack("{s:{s:s}}", "_meta", "progressToken", token + 1));
    assert_true(has_token);
    ask(p, "ping", json_pack("{s:{s:s}}", "_meta", "progressToken", token));
    assert_false(has_token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(what_is_too_much_is_refused),
        cmocka_unit_test(a_message_is_one_of_three_things),
        cmocka_unit_test(an_error_without_an_id_has_none),
        cmocka_unit_test(a_header_may_be_encoded),
        cmocka_unit_test(headers_must_agree_with_the_body),
        cmocka_unit_test(an_envelope_must_be_whole),
        cmocka_unit_test(an_argument_that_is_repeated_must_agree),
        cmocka_unit_test_setup_teardown(what_is_sealed_is_for_one_request, open_gate, close_gate),
        cmocka_unit_test_setup_teardown(what_was_not_sealed_is_refused, open_gate, close_gate),
        cmocka_unit_test_setup_teardown(of_capabilities_only_those_that_matter_are_kept, open_gate,
                                        close_gate),
        cmocka_unit_test_setup_teardown(subscriptions_are_bounded, open_gate, close_gate),
        cmocka_unit_test_setup_teardown(a_long_token_is_none, open_gate, close_gate),
        cmocka_unit_test_setup_teardown(a_token_has_a_bounded_number_of_sessions, open_gate,
                                        close_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
