/* What models' servers send that mean harm, or do not know better: nothing that a reply is made of can hurt. */
#include <errno.h>
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

static const struct protocol *const all[] = {&protocol_chat, &protocol_responses,
                                             &protocol_messages, &protocol_gemini};

/* Every value of a sound event is replaced by every one of these. */
static const char *const wrong[] = {
    "null",  "true", "-1", "1000000000", "99999999999999999", "1e300",       "\"\"",
    "\"x\"", "[]",   "{}", "[[],{},1]",  "{\"type\":{}}",     "\"\\u0000\"", "\"\xff\""};

static const char *const sound[] = {
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\",\"reasoning_content\":\"y\","
    "\"refusal\":\"z\","
    "\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"extra_content\":{\"a\":1},\"function\":{\"name\":"
    "\"p\","
    "\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1},"
    "\"error\":null}",
    "{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_"
    "call\","
    "\"call_id\":\"c\",\"name\":\"p\",\"arguments\":\"{}\",\"content\":[{\"text\":\"x\"}]}}",
    "{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\","
    "\"id\":\"r\","
    "\"encrypted_content\":\"x\",\"summary\":[]}}",
    "{\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{}\"}",
    "{\"type\":\"response.completed\",\"response\":{\"status\":\"incomplete\",\"incomplete_"
    "details\":"
    "{\"reason\":\"x\"},\"output\":[{\"type\":\"message\",\"content\":[{\"text\":\"x\",\"refusal\":"
    "\"y\"}]},"
    "{\"type\":\"function_call\",\"call_id\":\"c\",\"arguments\":\"{}\"}],\"usage\":{\"input_"
    "tokens\":1}}}",
    "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}",
    "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":"
    "\"c\","
    "\"name\":\"p\",\"input\":{\"code\":\"x\"}}}",
    "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\","
    "\"thinking\":\"x\","
    "\"signature\":\"y\",\"data\":\"z\"}}",
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\","
    "\"partial_json\":\"{\"}}",
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\","
    "\"thinking\":\"x\"}}",
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\","
    "\"signature\":\"x\"}}",
    "{\"type\":\"content_block_stop\",\"index\":0}",
    "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"x\"},\"usage\":{\"output_tokens\":1}"
    "}",
    "{\"type\":\"message_stop\"}",
    "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\",\"thoughtSignature\":\"y\","
    "\"thought\":true},"
    "{\"functionCall\":{\"name\":\"p\",\"id\":\"c\",\"args\":{\"code\":\"x\"}}}]},\"finishReason\":"
    "\"STOP\"}],"
    "\"usageMetadata\":{\"promptTokenCount\":1},\"promptFeedback\":{\"blockReason\":\"\"}}",
};

/* All sound events before and after it. */
static void try_event(const struct protocol *p, const char *data, size_t len)
{
    struct reply r;
    struct err e = {0};
    json_t *body = json_loadb(data, len, JSON_ALLOW_NUL, NULL);

    reply_init(&r, NULL);
    p->event(&r, "message", sound[6], strlen(sound[6]), &e);
    for (int i = 0; i < 2; i++)
        p->event(&r, "message", data, len, &e);
    for (size_t i = 0; i < sizeof(sound) / sizeof(sound[0]); i++)
        p->event(&r, "message", sound[i], strlen(sound[i]), &e);
    r.over = true;
    reply_finish(&r, &e);
    reply_take_blocks(&r);
    json_decref(reply_message(&r, p->name));
    reply_done(&r);

    reply_init(&r, NULL);
    if (body)
        p->whole(&r, body, &e);
    reply_done(&r);
    json_decref(body);
}

/* Where the value ends that begins here. */
static const char *value_end(const char *at)
{
    int depth = 0;
    bool in_string = false;

    do {
        if (*at == '\\')
            at++;
        else if (*at == '"')
            in_string = !in_string;
        else if (!in_string)
            depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at++;
    } while (depth > 0 || in_string || (*at && !strchr(",:]}", *at)));
    return at;
}

static void wrong_types_do_no_harm(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof(sound) / sizeof(sound[0]); s++) {
        for (const char *at = sound[s]; *at; at++) {
            if (at != sound[s] && !strchr(":[,", at[-1]))
                continue;
            for (size_t w = 0; w < sizeof(wrong) / sizeof(wrong[0]); w++) {
                cleanup_buf struct buf data = {0};
                buf_add(&data, sound[s], (size_t)(at - sound[s]));
                buf_add_text(&data, wrong[w]);
                buf_add_text(&data, value_end(at));
                for (size_t p = 0; p < sizeof(all) / sizeof(all[0]); p++)
                    try_event(all[p], buf_text(&data), data.len);
            }
        }
    }
}

static void depth_and_width_do_no_harm(void **state)
{
    cleanup_buf struct buf deep = {0}, wide = {0}, long_text = {0};
    (void)state;

    for (int i = 0; i < 100000; i++)
        buf_add_text(&deep, "[");
    buf_add_text(&wide, "{\"choices\":[0");
    for (int i = 0; i < 1000000; i++)
        buf_add_text(&wide, ",0");
    buf_add_text(&wide, "]}");
    buf_add_text(&long_text, "{\"choices\":[{\"delta\":{\"content\":\"");
    for (int i = 0; i < 500000; i++)
        buf_add_text(&long_text, "0123456789");
    buf_add_text(&long_text, "\"}}]}");
    for (size_t p = 0; p < sizeof(all) / sizeof(all[0]); p++) {
        struct reply r;
        struct err e;
        reply_init(&r, NULL);
        assert_int_equal(all[p]->event(&r, "message", deep.data, deep.len, &e), -1);
        assert_int_equal(all[p]->event(&r, "message", wide.data, wide.len, &e), -1);
        assert_int_equal(all[p]->event(&r, "message", "a\0b", 3, &e), -1);
        assert_int_equal(all[p]->event(&r, "message", "", 0, &e), -1);
        reply_done(&r);
    }
    struct reply r;
    struct err e;
    reply_init(&r, NULL);
    assert_int_equal(protocol_chat.event(&r, "message", long_text.data, long_text.len, &e), -1);
    assert_int_equal(e.code, EFBIG);
    reply_done(&r);
}

static void what_is_kept_is_bounded(void **state)
{
    cleanup_free char *mega = malloc(1u << 20);
    struct reply r;
    struct err e;
    (void)state;

    memset(mega, 'x', 1u << 20);
    reply_init(&r, NULL);
    for (unsigned i = 0; i < REPLY_CALLS; i++)
        assert_int_equal(reply_add_call(&r, i * 1000, NULL, NULL, &e), 0);
    assert_int_equal(reply_add_call(&r, 1, NULL, NULL, &e), -1);
    assert_int_equal(reply_add_arguments(&r, 7, "x", 1, &e), -1);
    assert_int_equal(reply_add_text(&r, mega, 1u << 20, &e), 0);
    assert_int_equal(reply_add_arguments(&r, 5000, mega, 1u << 20, &e), 0);
    assert_int_equal(reply_add_text(&r, mega, 1u << 20, &e), 0);
    assert_int_equal(reply_add_text(&r, mega, 1u << 20, &e), 0);
    assert_int_equal(reply_add_text(&r, "x", 1, &e), -1);
    assert_int_equal(e.code, EFBIG);
    assert_int_equal(reply_add_arguments(&r, 5000, "x", 1, &e), -1);
    reply_done(&r);
}

/* Thoughts, signatures and items come in any number. */
static void what_goes_back_is_bounded(void **state)
{
    static const struct {
        const struct protocol *protocol;
        const char *first, *again;
    } floods[] = {
        {&protocol_chat, NULL, "{\"choices\":[{\"delta\":{\"reasoning_content\":\"%s\"}}]}"},
        {&protocol_responses, NULL,
         "{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":"
         "\"message\",\"x\":\"%s\"}}"},
        {&protocol_messages,
         "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\"}}",
         "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\","
         "\"thinking\":\"%s\"}}"},
        {&protocol_messages,
         "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\"}}",
         "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\","
         "\"signature\":\"%s\"}}"},
        {&protocol_gemini, NULL,
         "{\"candidates\":[{\"content\":{\"parts\":[{\"thoughtSignature\":\"\",\"x\":\"%s\"}]}}]}"},
    };
    cleanup_free char *filler = calloc(1, 100001);
    (void)state;

    memset(filler, 'x', 100000);
    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        cleanup_free char *again = NULL;
        const char *cut = strstr(floods[i].again, "%s");
        struct reply r;
        struct err e;
        int n = 0;
        again =
            xasprintf("%.*s%s%s", (int)(cut - floods[i].again), floods[i].again, filler, cut + 2);
        reply_init(&r, NULL);
        if (floods[i].first)
            floods[i].protocol->event(&r, "", floods[i].first, strlen(floods[i].first), &e);
        while (n < 1000 && floods[i].protocol->event(&r, "", again, strlen(again), &e) == 0)
            n++;
        assert_in_range(n, 100, 200);
        assert_int_equal(e.code, EFBIG);
        reply_done(&r);
    }
}

static void protocols_have_names(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof(all) / sizeof(all[0]); p++)
        assert_ptr_equal(protocol_find(all[p]->name), all[p]);
    assert_null(protocol_find("gopher"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_types_do_no_harm),  cmocka_unit_test(depth_and_width_do_no_harm),
        cmocka_unit_test(what_is_kept_is_bounded), cmocka_unit_test(what_goes_back_is_bounded),
        cmocka_unit_test(protocols_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
