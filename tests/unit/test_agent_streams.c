/* What models' servers send, understood: in pieces that are cut anywhere, and whole.
 * test_agent_harm.c has servers that mean harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/protocol.h"
#include "agent/reply.h"
#include "base/buf.h"
#include "guest/events.h"

#define EVENT_MAX (8u << 20)

/* ---- listening ---- */

static struct buf heard_text, heard_code[REPLY_CALLS];

static void on_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    buf_add(&heard_text, text, len);
}

static void on_code(void *ctx, unsigned call, const char *text, size_t len)
{
    (void)ctx;
    assert_true(call < REPLY_CALLS);
    buf_add(&heard_code[call], text, len);
}

static void forget(void)
{
    buf_done(&heard_text);
    for (unsigned i = 0; i < REPLY_CALLS; i++)
        buf_done(&heard_code[i]);
}

struct feeding {
    const struct protocol *protocol;
    struct reply *reply;
};

static int on_event(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
    const struct feeding *f = ctx;

    return f->protocol->event(f->reply, name, data, len, e);
}

/* The stream in pieces of that many bytes; 0: of any number. */
static int feed(const struct protocol *p, const char *stream, size_t len, size_t piece,
                struct reply *r, struct err *e)
{
    static const struct reply_view view = {.text = on_text, .code = on_code};
    struct feeding f = {.protocol = p, .reply = r};
    struct events ev;
    int result = 0;

    forget();
    reply_init(r, &view);
    events_init(&ev, EVENT_MAX, on_event, &f);
    for (size_t at = 0, n; at < len && result == 0; at += n) {
        n = piece ? piece : 1 + (size_t)rand() % 40;
        n = n < len - at ? n : len - at;
        result = events_feed(&ev, stream + at, n, e);
    }
    events_done(&ev);
    return result;
}

/* All that there is to know of it: the message, and "over", "cut", "refused", tokens, and what was heard. */
static char *told(const struct protocol *p, struct reply *r)
{
    json_t *m = reply_message(r, p->name);
    json_t *codes = json_array();
    json_t *call;
    size_t i;

    json_array_foreach(json_object_get(m, "calls"), i, call)
    {
        json_array_append_new(codes, json_string(buf_text(&heard_code[i])));
        if (strlen(json_string_value(json_object_get(call, "id"))) == 9)
            json_object_set_new(call, "id", json_string("made up"));
    }
    json_object_del(m, "role");
    assert_int_equal(heard_text.len, r->text.len);
    assert_memory_equal(buf_text(&heard_text), buf_text(&r->text), r->text.len);
    if (json_array_size(codes) > 0)
        json_object_set(m, "heard", codes);
    json_decref(codes);
    if (!r->over || r->cut || r->refused)
        json_object_set_new(m, "end",
                            json_string(!r->over     ? "no"
                                        : r->refused ? "refused"
                                                     : "cut"));
    if (r->tokens_in || r->tokens_out)
        json_object_set_new(
            m, "tokens", json_pack("[I, I]", (json_int_t)r->tokens_in, (json_int_t)r->tokens_out));
    char *text = json_dumps(m, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(m);
    return text;
}

static char *sorted(const char *json)
{
    json_error_t why;
    json_t *j = json_loads(json, 0, &why);

    if (!j)
        fail_msg("%s in %s", why.text, json);
    char *text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(j);
    return text;
}

static void assert_stream(const struct protocol *p, const char *stream, const char *expected)
{
    static const size_t pieces[] = {1, 2, 7, 100000, 0, 0, 0};
    cleanup_free char *want = sorted(expected);
    struct err e = {0};

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct reply r;
        if (feed(p, stream, strlen(stream), pieces[i], &r, &e) < 0)
            fail_msg("%s", e.text);
        if (r.over)
            reply_finish(&r, &e);
        cleanup_free char *got = told(p, &r);
        assert_string_equal(got, want);
        reply_done(&r);
        forget();
    }
}

static void assert_whole(const struct protocol *p, const char *body, const char *expected)
{
    static const struct reply_view view = {.text = on_text, .code = on_code};
    json_t *j = json_loads(body, 0, NULL);
    cleanup_free char *want = sorted(expected);
    struct reply r;
    struct err e = {0};

    assert_non_null(j);
    forget();
    reply_init(&r, &view);
    if (p->whole(&r, j, &e) < 0)
        fail_msg("%s", e.text);
    assert_true(r.over);
    reply_finish(&r, &e);
    cleanup_free char *got = told(p, &r);
    assert_string_equal(got, want);
    reply_done(&r);
    json_decref(j);
    forget();
}

/* The server says that it failed, or nothing can be made of it. */
static void assert_fails(const struct protocol *p, const char *stream, const char *why)
{
    struct reply r;
    struct err e = {0};

    assert_int_equal(feed(p, stream, strlen(stream), 0, &r, &e), -1);
    if (!strstr(e.text, why))
        fail_msg("\"%s\" is not \"%s\"", e.text, why);
    reply_done(&r);
    forget();
}

#define EV(json) "data: " json "\n\n"
#define NAMED(name, json) "event: " name "\ndata: " json "\n\n"

/* ---- chat ---- */

#define DELTA(delta, reason)                                                                       \
    EV("{\"choices\":[{\"index\":0,\"delta\":" delta ",\"finish_reason\":" reason "}]}")
#define CALL_PIECE(index, text)                                                                    \
    DELTA("{\"tool_calls\":[{\"index\":" index ",\"function\":{\"arguments\":\"" text "\"}}]}",    \
          "null")

static void chat_streams(void **state)
{
    (void)state;
    assert_stream(&protocol_chat,
                  DELTA("{\"role\":\"assistant\",\"content\":\"Gr\\u00fc\"}", "null")
                      DELTA("{\"content\":\"ße\"}", "null") DELTA("{}", "\"stop\"")
                          EV("{\"choices\":[],\"usage\":{\"prompt_tokens\":7,"
                             "\"completion_tokens\":3}}") EV("[DONE]"),
                  "{\"text\":\"Grüße\",\"tokens\":[7,3]}");
    assert_stream(&protocol_chat,
                  EV("{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}") EV("[DONE]"),
                  "{\"text\":\"x\"}");
    assert_stream(&protocol_chat, DELTA("{\"content\":\"so far\"}", "null"),
                  "{\"text\":\"so far\",\"end\":\"no\"}");
    assert_stream(&protocol_chat, DELTA("{\"content\":\"long\"}", "\"length\""),
                  "{\"text\":\"long\",\"end\":\"cut\"}");
    assert_stream(&protocol_chat, DELTA("{}", "\"content_filter\""),
                  "{\"text\":\"\",\"end\":\"refused\"}");
    assert_stream(&protocol_chat, DELTA("{\"refusal\":\"No.\"}", "\"stop\""),
                  "{\"text\":\"No.\",\"end\":\"refused\"}");
    assert_stream(&protocol_chat,
                  DELTA("{\"content\":[{\"type\":\"text\",\"text\":\"in parts\"}]}", "\"stop\""),
                  "{\"text\":\"in parts\"}");
}

static void chat_streams_calls(void **state)
{
    (void)state;
    assert_stream(
        &protocol_chat,
        DELTA("{\"content\":null,\"tool_calls\":[{\"index\":0,\"id\":\"c0\",\"type\":\"function\","
              "\"function\":{\"name\":\"python\",\"arguments\":\"\"}}]}",
              "null") CALL_PIECE("0", "{\\\"co") CALL_PIECE("0", "de\\\":\\\"a\\\\")
            DELTA("{\"tool_calls\":[{\"index\":1,\"id\":\"c1\","
                  "\"function\":{\"name\":\"python\","
                  "\"arguments\":\"{\\\"code\\\":\"}}]}",
                  "null") CALL_PIECE("1", "\\\"b\\\"}") CALL_PIECE("0", "nb\\\"}")
                DELTA("{}", "\"tool_calls\""),
        "{\"text\":\"\",\"heard\":[\"a\\nb\",\"b\"],\"calls\":["
        "{\"id\":\"c0\",\"name\":\"python\",\"arguments\":\"{\\\"code\\\":\\\"a\\\\nb\\\"}\"},"
        "{\"id\":\"c1\",\"name\":\"python\",\"arguments\":\"{\\\"code\\\":\\\"b\\\"}\"}]}");
}

#define CODE_A "\"arguments\":\"{\\\"code\\\":\\\"a\\\"}\""
#define CODE_B "\"arguments\":\"{\\\"code\\\":\\\"b\\\"}\""
#define BOTH(id0, id1)                                                                             \
    "{\"text\":\"\",\"heard\":[\"a\",\"b\"],\"calls\":["                                           \
    "{\"id\":\"" id0 "\",\"name\":\"python\"," CODE_A "},{\"id\":\"" id1                           \
    "\",\"name\":\"python\"," CODE_B "}]}"

static void chat_from_servers_with_their_own_idea_of_it(void **state)
{
    (void)state;
    /* whole calls without an index, and without an id */
    assert_stream(
        &protocol_chat,
        DELTA("{\"tool_calls\":[{\"id\":\"x\",\"function\":{\"name\":\"python\"," CODE_A "}}]}",
              "null")
            DELTA("{\"tool_calls\":[{\"id\":\"y\",\"function\":{\"name\":\"python\"," CODE_B "}}]}",
                  "\"tool_calls\""),
        BOTH("x", "y"));
    assert_stream(&protocol_chat,
                  DELTA("{\"tool_calls\":[{\"function\":{\"name\":\"python\"," CODE_A
                        "}},{\"function\":{\"name\":\"python\"," CODE_B "}}]}",
                        "\"stop\""),
                  BOTH("made up", "made up"));
    /* all with the index 0; the same id twice */
    assert_stream(&protocol_chat,
                  DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":"
                        "\"python\"," CODE_A "}}]}",
                        "null")
                      DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"y\",\"function\":{\"name\":"
                            "\"python\"," CODE_B "}}]}",
                            "\"tool_calls\""),
                  BOTH("x", "y"));
    assert_stream(&protocol_chat,
                  DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":"
                        "\"python\"," CODE_A "}},{\"index\":1,\"id\":\"x\",\"function\":{\"name\":"
                        "\"python\"," CODE_B "}}]}",
                        "\"tool_calls\""),
                  BOTH("x", "made up"));
    /* id and name in every piece, no index, in pieces */
    assert_stream(
        &protocol_chat,
        DELTA("{\"tool_calls\":[{\"id\":\"x\",\"function\":{\"name\":\"python\","
              "\"arguments\":\"{\\\"code\\\"\"}}]}",
              "null") DELTA("{\"tool_calls\":[{\"id\":\"x\",\"function\":{\"name\":\"python\","
                            "\"arguments\":\":\\\"a\\\"}\"}}]}",
                            "\"tool_calls\""),
        "{\"text\":\"\",\"heard\":[\"a\"],\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A
        "}]}");
    /* arguments as an object, a name with what belongs to a template */
    assert_stream(
        &protocol_chat,
        DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":"
              "\"python<|channel|>commentary\",\"arguments\":{\"code\":\"a\"}}}]}",
              "\"stop\""),
        "{\"text\":\"\",\"heard\":[\"a\"],\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A
        "}]}");
}

static void chat_keeps_what_calls_want_back(void **state)
{
    (void)state;
    assert_stream(
        &protocol_chat,
        DELTA("{\"reasoning_content\":\"hm, \"}", "null")
            DELTA("{\"reasoning_content\":\"so\"}", "null")
                DELTA("{\"tool_calls\":[{\"id\":\"x\",\"function\":{\"name\":\"python\"," CODE_A
                      "},\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}}}]}",
                      "\"tool_calls\"") EV("[DONE]"),
        "{\"text\":\"\",\"heard\":[\"a\"],\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A
        "}],\"raw\":{\"protocol\":\"chat\",\"content\":{\"reasoning_content\":\"hm, so\","
        "\"extra\":{\"x\":{\"google\":{\"thought_signature\":\"s\"}}}}}}");
    assert_stream(&protocol_chat,
                  DELTA("{\"reasoning_content\":\"hm\"}", "null")
                      DELTA("{\"content\":\"4\"}", "\"stop\""),
                  "{\"text\":\"4\"}");
}

static void chat_whole(void **state)
{
    (void)state;
    assert_whole(&protocol_chat,
                 "{\"choices\":[{\"message\":{\"content\":\"hi\",\"tool_calls\":[{\"id\":\"x\","
                 "\"function\":{\"name\":\"python\"," CODE_A
                 "}}]},\"finish_reason\":\"tool_calls\"}],"
                 "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}",
                 "{\"text\":\"hi\",\"heard\":[\"a\"],\"tokens\":[1,2],"
                 "\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A "}]}");
}

/* ---- responses ---- */

#define ITEM "{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"x\",\"name\":\"python\","
#define THOUGHT "{\"id\":\"rs\",\"summary\":[],\"type\":\"reasoning\",\"encrypted_content\":\"##\"}"
#define ARGUMENTS(event, member, text)                                                             \
    EV("{\"type\":\"response.function_call_arguments." event                                       \
       "\",\"output_index\":1,\"item_id\":\"fc\",\"" member "\":\"" text "\"}")
#define ITEM_EVENT(event, number, item)                                                            \
    NAMED("response.output_item." event, "{\"type\":\"response.output_item." event                 \
                                         "\",\"output_index\":" number ",\"item\":" item "}")
#define COMPLETED                                                                                  \
    EV("{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],"    \
       "\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}}")

static void responses_stream(void **state)
{
    (void)state;
    assert_stream(&protocol_responses,
                  ITEM_EVENT("added", "0", "{\"type\":\"message\"}")
                      EV("{\"type\":\"response.output_text.delta\",\"delta\":\"Hel\"}")
                          EV("{\"type\":\"response.output_text.delta\",\"delta\":\"lo\"}")
                              ITEM_EVENT("added", "1", "{\"type\":\"message\"}")
                                  EV("{\"type\":\"response.output_text.delta\",\"delta\":\"!\"}")
                                      COMPLETED,
                  "{\"text\":\"Hello\\n\\n!\",\"tokens\":[7,3]}");
    assert_stream(
        &protocol_responses,
        ITEM_EVENT("added", "0", "{\"type\":\"reasoning\"}") ITEM_EVENT("done", "0", THOUGHT)
            ITEM_EVENT("added", "1", ITEM "\"arguments\":\"\"}")
                ARGUMENTS("delta", "delta", "{\\\"code\\\":")
                    ARGUMENTS("delta", "delta", "\\\"a\\\"}")
                        ARGUMENTS("done", "arguments", "{\\\"code\\\":\\\"a\\\"}")
                            ITEM_EVENT("done", "1", ITEM CODE_A "}") COMPLETED,
        "{\"text\":\"\",\"heard\":[\"a\"],\"tokens\":[7,3],"
        "\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A "}],"
        "\"raw\":{\"protocol\":\"responses\",\"content\":[" THOUGHT "," ITEM CODE_A "}]}}");
    /* without deltas; and without thoughts nothing is kept */
    assert_stream(&protocol_responses,
                  ITEM_EVENT("added", "1", ITEM "\"arguments\":\"\"}")
                      ARGUMENTS("done", "arguments", "{\\\"code\\\":\\\"a\\\"}")
                          ITEM_EVENT("done", "1", ITEM CODE_A "}") COMPLETED,
                  "{\"text\":\"\",\"heard\":[\"a\"],\"tokens\":[7,3],"
                  "\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A "}]}");
    assert_stream(
        &protocol_responses,
        EV("{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":"
           "[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"all\"}]}]}}"),
        "{\"text\":\"all\"}");
}

static void responses_that_end_otherwise(void **state)
{
    (void)state;
    assert_stream(
        &protocol_responses,
        ITEM_EVENT("done", "0", THOUGHT)
            EV("{\"type\":\"response.output_text.delta\",\"delta\":\"x\"}")
                EV("{\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\","
                   "\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}"),
        "{\"text\":\"x\",\"end\":\"cut\"}");
    assert_stream(&protocol_responses,
                  EV("{\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\","
                     "\"incomplete_details\":{\"reason\":\"content_filter\"}}}"),
                  "{\"text\":\"\",\"end\":\"refused\"}");
    assert_stream(&protocol_responses,
                  EV("{\"type\":\"response.refusal.delta\",\"delta\":\"No.\"}") COMPLETED,
                  "{\"text\":\"No.\",\"end\":\"refused\",\"tokens\":[7,3]}");
    assert_stream(&protocol_responses,
                  EV("{\"type\":\"response.output_text.delta\",\"delta\":\"x\"}"),
                  "{\"text\":\"x\",\"end\":\"no\"}");
    assert_fails(
        &protocol_responses,
        EV("{\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"burnt\"}}}"),
        "burnt");
    assert_fails(&protocol_responses, NAMED("error", "{\"type\":\"error\",\"message\":\"burnt\"}"),
                 "burnt");
}

static void responses_whole(void **state)
{
    (void)state;
    assert_whole(
        &protocol_responses,
        "{\"status\":\"completed\",\"error\":null,\"output\":[" THOUGHT
        ",{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"hi\"}]}," ITEM
            CODE_A "}],\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}",
        "{\"text\":\"hi\",\"heard\":[\"a\"],\"tokens\":[1,2],"
        "\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A "}],"
        "\"raw\":{\"protocol\":\"responses\",\"content\":[" THOUGHT
        ",{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"hi\"}]}," ITEM
            CODE_A "}]}}");
}

/* ---- messages ---- */

#define BLOCK(index, block)                                                                        \
    NAMED("content_block_start",                                                                   \
          "{\"type\":\"content_block_start\",\"index\":" index ",\"content_block\":" block "}")
#define BLOCK_DELTA(index, delta)                                                                  \
    NAMED("content_block_delta",                                                                   \
          "{\"type\":\"content_block_delta\",\"index\":" index ",\"delta\":" delta "}")
#define BLOCK_STOP(index)                                                                          \
    NAMED("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":" index "}")
#define MESSAGE_START                                                                              \
    NAMED("message_start", "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":" \
                           "3,\"cache_read_input_tokens\":4,\"output_tokens\":1}}}")
#define MESSAGE_END(reason)                                                                        \
    NAMED("message_delta", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason      \
                           "\"},\"usage\":{\"output_tokens\":9}}")                                 \
    NAMED("message_stop", "{\"type\":\"message_stop\"}")
#define JSON_PIECE(index, text)                                                                    \
    BLOCK_DELTA(index, "{\"type\":\"input_json_delta\",\"partial_json\":\"" text "\"}")

static void messages_stream(void **state)
{
    (void)state;
    assert_stream(
        &protocol_messages,
        MESSAGE_START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}") NAMED("ping",
                                                                            "{\"type\":\"ping\"}")
            BLOCK_DELTA("0", "{\"type\":\"text_delta\",\"text\":\"Look\"}") BLOCK_STOP("0")
                BLOCK("1", "{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"python\",\"input\":{}}")
                    JSON_PIECE("1", "") JSON_PIECE("1", "{\\\"code\\\":\\\"a")
                        JSON_PIECE("1", "\\\"}") BLOCK_STOP("1") MESSAGE_END("tool_use"),
        "{\"text\":\"Look\",\"heard\":[\"a\"],\"tokens\":[7,9],"
        "\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A "}]}");
    assert_stream(&protocol_messages,
                  MESSAGE_START BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}")
                      BLOCK_DELTA("0", "{\"type\":\"text_delta\",\"text\":\"Lo\"}"),
                  "{\"text\":\"Lo\",\"end\":\"no\",\"tokens\":[7,1]}");
    assert_stream(&protocol_messages, MESSAGE_END("max_tokens"),
                  "{\"text\":\"\",\"end\":\"cut\",\"tokens\":[0,9]}");
    assert_stream(&protocol_messages, MESSAGE_END("refusal"),
                  "{\"text\":\"\",\"end\":\"refused\",\"tokens\":[0,9]}");
    assert_fails(&protocol_messages,
                 NAMED("error", "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
                                "\"message\":\"Overloaded\"}}"),
                 "Overloaded");
}

static void messages_keep_thoughts_where_they_were(void **state)
{
    (void)state;
    assert_stream(
        &protocol_messages,
        BLOCK("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
            BLOCK_DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"h\"}") BLOCK_DELTA(
                "0", "{\"type\":\"thinking_delta\",\"thinking\":\"m\"}")
                BLOCK_DELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"si\"}") BLOCK_DELTA(
                    "0", "{\"type\":\"signature_delta\",\"signature\":\"gn\"}") BLOCK_STOP("0")
                    BLOCK("1", "{\"type\":\"redacted_thinking\",\"data\":\"##\"}") BLOCK_STOP("1")
                        BLOCK("2", "{\"type\":\"text\",\"text\":\"\\n\"}") BLOCK_STOP("2") BLOCK(
                            "3", "{\"type\":\"text\",\"text\":\"Look\"}") BLOCK_STOP("3")
                            BLOCK("4", "{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"python\","
                                       "\"input\":{\"code\":\"a\"}}") BLOCK_STOP("4")
                                MESSAGE_END("tool_use"),
        "{\"text\":\"\\nLook\",\"heard\":[\"a\"],\"tokens\":[0,9],"
        "\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A "}],"
        "\"raw\":{\"protocol\":\"messages\",\"content\":["
        "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"sign\"},"
        "{\"type\":\"redacted_thinking\",\"data\":\"##\"},{\"type\":\"text\",\"text\":\"Look\"},"
        "{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"python\",\"input\":{\"code\":\"a\"}}]}}");
}

static void messages_have_one_block_at_a_time(void **state)
{
    (void)state;
    assert_fails(&protocol_messages,
                 BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}")
                     BLOCK("1", "{\"type\":\"text\",\"text\":\"\"}"),
                 "understood");
    assert_fails(&protocol_messages,
                 BLOCK("0", "{\"type\":\"text\",\"text\":\"\"}")
                     BLOCK_DELTA("1", "{\"type\":\"text_delta\",\"text\":\"x\"}"),
                 "understood");
    assert_fails(&protocol_messages, BLOCK_DELTA("0", "{\"type\":\"text_delta\",\"text\":\"x\"}"),
                 "understood");
    assert_fails(&protocol_messages, BLOCK_STOP("0"), "understood");
}

static void messages_whole(void **state)
{
    (void)state;
    assert_whole(
        &protocol_messages,
        "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"},"
        "{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"python\",\"input\":{\"code\":\"a\"}}],"
        "\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}",
        "{\"text\":\"hi\",\"heard\":[\"a\"],\"tokens\":[1,2],"
        "\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A "}]}");
}

/* ---- gemini ---- */

#define PARTS(parts)                                                                               \
    EV("{\"candidates\":[{\"content\":{\"parts\":[" parts "],\"role\":\"model\"}}]}")
#define PARTS_END(parts, reason)                                                                   \
    EV("{\"candidates\":[{\"content\":{\"parts\":[" parts "]},\"finishReason\":\"" reason          \
       "\"}],\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":2,"                \
       "\"thoughtsTokenCount\":1}}")

static void gemini_streams(void **state)
{
    (void)state;
    assert_stream(
        &protocol_gemini,
        PARTS("{\"text\":\"Lo\"}") PARTS("{\"text\":\"ok\"},{\"text\":\"hm\",\"thought\":true}")
            PARTS_END("{\"functionCall\":{\"name\":\"python\",\"args\":{\"code\":\"a\"}}},"
                      "{\"functionCall\":{\"name\":\"python\",\"args\":{\"code\":\"b\"}}}",
                      "STOP"),
        "{\"text\":\"Look\",\"heard\":[\"a\",\"b\"],\"tokens\":[7,3],"
        "\"calls\":[{\"id\":\"made up\",\"name\":\"python\"," CODE_A
        "},{\"id\":\"made up\",\"name\":\"python\"," CODE_B "}]}");
    assert_stream(&protocol_gemini, PARTS("{\"text\":\"Lo\"}"), "{\"text\":\"Lo\",\"end\":\"no\"}");
    assert_stream(&protocol_gemini, PARTS_END("{\"text\":\"Lo\"}", "MAX_TOKENS"),
                  "{\"text\":\"Lo\",\"end\":\"cut\",\"tokens\":[7,3]}");
    assert_stream(&protocol_gemini, PARTS_END("", "SAFETY"),
                  "{\"text\":\"\",\"end\":\"refused\",\"tokens\":[7,3]}");
    assert_stream(&protocol_gemini, EV("{\"promptFeedback\":{\"blockReason\":\"OTHER\"}}"),
                  "{\"text\":\"\",\"end\":\"refused\"}");
    assert_fails(&protocol_gemini, PARTS_END("", "MALFORMED_FUNCTION_CALL"),
                 "MALFORMED_FUNCTION_CALL");
    assert_fails(&protocol_gemini, EV("{\"error\":{\"code\":503,\"message\":\"burnt\"}}"), "burnt");
}

static void gemini_keeps_what_is_signed(void **state)
{
    (void)state;
    assert_stream(
        &protocol_gemini,
        PARTS("{\"text\":\"Lo\"}") PARTS("{\"text\":\"ok\"}")
            PARTS("{\"functionCall\":{\"name\":\"python\",\"id\":\"x\",\"args\":{\"code\":\"a\"}},"
                  "\"thoughtSignature\":\"##\"}") PARTS("{\"text\":\" now\"}")
                PARTS_END("{\"text\":\".\",\"thoughtSignature\":\"#\"}", "STOP"),
        "{\"text\":\"Look now.\",\"heard\":[\"a\"],\"tokens\":[7,3],"
        "\"calls\":[{\"id\":\"x\",\"name\":\"python\"," CODE_A "}],"
        "\"raw\":{\"protocol\":\"gemini\",\"content\":[{\"text\":\"Look\"},"
        "{\"functionCall\":{\"name\":\"python\",\"id\":\"x\",\"args\":{\"code\":\"a\"}},"
        "\"thoughtSignature\":\"##\"},{\"text\":\" "
        "now\"},{\"text\":\".\",\"thoughtSignature\":\"#\"}]}}");
    assert_stream(&protocol_gemini,
                  PARTS_END("{\"text\":\"4\",\"thoughtSignature\":\"#\"}", "STOP"),
                  "{\"text\":\"4\",\"tokens\":[7,3],\"raw\":{\"protocol\":\"gemini\",\"content\":["
                  "{\"text\":\"4\",\"thoughtSignature\":\"#\"}]}}");
}

static void gemini_whole(void **state)
{
    (void)state;
    assert_whole(&protocol_gemini,
                 "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"},{\"functionCall\":"
                 "{\"name\":\"python\",\"args\":{\"code\":\"a\"}}}]},\"finishReason\":\"STOP\"}],"
                 "\"usageMetadata\":{\"promptTokenCount\":1,\"candidatesTokenCount\":2}}",
                 "{\"text\":\"hi\",\"heard\":[\"a\"],\"tokens\":[1,2],"
                 "\"calls\":[{\"id\":\"made up\",\"name\":\"python\"," CODE_A "}]}");
}

/* ---- all of them ---- */

/* As servers that cut UTF-16 do it. */
static void a_character_in_two_events(void **state)
{
    (void)state;
    assert_stream(&protocol_chat,
                  DELTA("{\"content\":\"a \\ud83d\"}", "null")
                      DELTA("{\"content\":\"\\uDE00 b \\ud83d\\ude00\"}", "\"stop\""),
                  "{\"text\":\"a 😀 b 😀\"}");
    assert_stream(&protocol_chat,
                  DELTA("{\"content\":\"a \\ud83d b \\\\ud83d\"}", "null")
                      DELTA("{\"content\":\"\\uDE00\"}", "\"stop\""),
                  "{\"text\":\"a \xef\xbf\xbd b \\\\ud83d\xef\xbf\xbd\"}");
}

static void broken_utf8_is_repaired(void **state)
{
    (void)state;
    assert_stream(&protocol_chat, DELTA("{\"content\":\"a\xff\xe2\x82 b\"}", "\"stop\""),
                  "{\"text\":\"a\xef\xbf\xbd\xef\xbf\xbd b\"}");
}

static void a_reply_must_be_whole(void **state)
{
    struct reply r;
    struct err e;
    (void)state;

    reply_init(&r, NULL);
    assert_int_equal(reply_add_text(&r, "x", 1, &e), 0);
    assert_int_equal(reply_finish(&r, &e), -1);
    r.over = true;
    assert_int_equal(reply_finish(&r, &e), 0);
    reply_done(&r);
    reply_init(&r, NULL);
    r.over = true;
    assert_int_equal(reply_finish(&r, &e), -1);
    r.cut = true;
    assert_int_equal(reply_finish(&r, &e), 0);
    reply_done(&r);
}

static void errors_in_every_shape(void **state)
{
    static const char *const shapes[] = {
        "{\"error\":{\"message\":\"no\"}}",
        "{\"error\":\"no\"}",
        "{\"message\":\"no\"}",
        "{\"object\":\"error\",\"message\":\"no\"}",
        "[{\"error\":{\"message\":\"no\"}}]",
        "{\"type\":\"error\",\"error\":{\"type\":\"x\",\"message\":\"no\"}}",
        "{\"detail\":\"no\"}",
        "{\"detail\":[{\"msg\":\"no\"}]}"};
    static const char *const others[] = {"{}",
                                         "[]",
                                         "{\"error\":null}",
                                         "{\"error\":{}}",
                                         "{\"message\":1}",
                                         "[[[]]]",
                                         "{\"detail\":[1]}",
                                         "{\"error\":\"\"}"};
    (void)state;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        json_t *j = json_loads(shapes[i], 0, NULL);
        assert_string_equal(protocol_error(j), "no");
        json_decref(j);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        json_t *j = json_loads(others[i], 0, NULL);
        assert_null(protocol_error(j));
        json_decref(j);
    }
    assert_null(protocol_error(NULL));
    assert_fails(&protocol_chat, EV("{\"error\":{\"message\":\"over\\u001b[31m capacity\"}}"),
                 "over?[31m capacity");
    assert_fails(&protocol_chat, EV("{\"choices\":[{"), "understood");
    assert_fails(&protocol_chat, EV("so?"), "understood");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chat_streams),
        cmocka_unit_test(chat_streams_calls),
        cmocka_unit_test(chat_from_servers_with_their_own_idea_of_it),
        cmocka_unit_test(chat_keeps_what_calls_want_back),
        cmocka_unit_test(chat_whole),
        cmocka_unit_test(responses_stream),
        cmocka_unit_test(responses_that_end_otherwise),
        cmocka_unit_test(responses_whole),
        cmocka_unit_test(messages_stream),
        cmocka_unit_test(messages_keep_thoughts_where_they_were),
        cmocka_unit_test(messages_have_one_block_at_a_time),
        cmocka_unit_test(messages_whole),
        cmocka_unit_test(gemini_streams),
        cmocka_unit_test(gemini_keeps_what_is_signed),
        cmocka_unit_test(gemini_whole),
        cmocka_unit_test(a_character_in_two_events),
        cmocka_unit_test(broken_utf8_is_repaired),
        cmocka_unit_test(a_reply_must_be_whole),
        cmocka_unit_test(errors_in_every_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
