/* What is said to a model: the body of a request, for each protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/protocol.h"
#include "agent/talk.h"
#include "agent/tell.h"
#include "base/buf.h"

static struct model model;

/* Quotes are ' in what is expected here, to be read. */
static json_t *parse(const char *text)
{
    cleanup_free char *json = strdup(text);
    json_error_t why;

    for (char *at = json; *at; at++)
        if (*at == '\'')
            *at = '"';
    json_t *j = json_loads(json, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!j)
        fail_msg("%s at %d in %s", why.text, why.position, json);
    return j;
}

static void assert_same(json_t *got, const char *expected)
{
    json_t *want = parse(expected);

    if (!json_equal(got, want)) {
        cleanup_free char *a = json_dumps(got, JSON_SORT_KEYS | JSON_INDENT(1));
        cleanup_free char *b = json_dumps(want, JSON_SORT_KEYS | JSON_INDENT(1));
        assert_string_equal(a, b);
    }
    json_decref(want);
}

static json_t *body(const struct protocol *p, const json_t *talk, bool stream)
{
    struct request r = {.system = "S", .talk = talk, .stream = stream};

    model.protocol = p;
    json_t *b = p->body(&model, &r);
    assert_non_null(b);
    return b;
}

/* One member of the body. */
static void assert_member(const struct protocol *p, const json_t *talk, const char *member,
                          const char *expected)
{
    json_t *b = body(p, talk, true);

    assert_same(json_object_get(b, member), expected);
    json_decref(b);
}

static int setup(void **state)
{
    (void)state;
    model = (struct model){.name = "m", .base = "http://localhost/v1", .tools = true, .sees = true};
    return 0;
}

/* A question, two calls, one of which failed and one with a picture, an answer, and one more question. */
static json_t *conversation(void)
{
    return parse("[{'role':'user','text':'Q'},"
                 "{'role':'model','text':'Look','calls':[{'id':'a','name':'python','arguments':'{"
                 "\\'code\\':\\'x\\'}'},"
                 "{'id':'b','name':'python','arguments':'{\\'code\\':\\'y\\'}'}]},"
                 "{'role':'results','results':[{'id':'a','name':'python','text':'R','pictures':"
                 "[{'type':'image/"
                 "png','data':'UE5H'}]},{'id':'b','name':'python','text':'E','failed':true}]},"
                 "{'role':'model','text':'A'},{'role':'user','text':'Q2'}]");
}

#define DESCRIPTION                                                                                \
    "'Runs Python code in the session, where variables, imports and files stay from one call to "  \
    "the next. What the code prints, the value of its last expression and the pictures it draws "  \
    "come back.'"
#define SCHEMA                                                                                     \
    "{'type':'object','properties':{'code':{'type':'string','description':'The Python code to "    \
    "run'}},'required':['code']}"

/* ---- golden ---- */

static void chat(void **state)
{
    json_t *talk = conversation();
    json_t *b = body(&protocol_chat, talk, true);
    (void)state;

    assert_same(
        b,
        "{'model':'m','stream':true,'stream_options':{'include_usage':true},'tools':[{'type':'"
        "function',"
        "'function':{'name':'python','description':" DESCRIPTION ",'parameters':" SCHEMA
        "}}],'messages':["
        "{'role':'system','content':'S'},{'role':'user','content':'Q'},"
        "{'role':'assistant','content':'Look','tool_calls':["
        "{'id':'a','type':'function','function':{'name':'python','arguments':'{\\'code\\':\\'x\\'}'"
        "}},"
        "{'id':'b','type':'function','function':{'name':'python','arguments':'{\\'code\\':\\'y\\'}'"
        "}}]},"
        "{'role':'tool','tool_call_id':'a','content':'R'},{'role':'tool','tool_call_id':'b','"
        "content':'E'},"
        "{'role':'user','content':[{'type':'text','text':'The pictures that the code has drawn:'},"
        "{'type':'image_url','image_url':{'url':'data:image/png;base64,UE5H'}}]},"
        "{'role':'assistant','content':'A'},{'role':'user','content':'Q2'}]}");
    json_decref(b);
    b = body(&protocol_chat, talk, false);
    assert_null(json_object_get(b, "stream"));
    assert_null(json_object_get(b, "stream_options"));
    json_decref(b);
    json_decref(talk);
}

static void responses(void **state)
{
    json_t *talk = conversation();
    json_t *b = body(&protocol_responses, talk, true);
    (void)state;

    assert_same(
        b,
        "{'model':'m','instructions':'S','stream':true,'store':false,'include':['reasoning."
        "encrypted_content'],"
        "'tools':[{'type':'function','name':'python','description':" DESCRIPTION
        ",'parameters':" SCHEMA ",'strict':false}],'input':["
        "{'type':'message','role':'user','content':[{'type':'input_text','text':'Q'}]},"
        "{'type':'message','role':'assistant','content':[{'type':'output_text','text':'Look'}]},"
        "{'type':'function_call','call_id':'a','name':'python','arguments':'{\\'code\\':\\'x\\'}'},"
        "{'type':'function_call','call_id':'b','name':'python','arguments':'{\\'code\\':\\'y\\'}'},"
        "{'type':'function_call_output','call_id':'a','output':[{'type':'input_text','text':'R'},"
        "{'type':'input_image','image_url':'data:image/png;base64,UE5H'}]},"
        "{'type':'function_call_output','call_id':'b','output':'E'},"
        "{'type':'message','role':'assistant','content':[{'type':'output_text','text':'A'}]},"
        "{'type':'message','role':'user','content':[{'type':'input_text','text':'Q2'}]}]}");
    json_decref(b);
    json_decref(talk);
}

static void messages(void **state)
{
    json_t *talk = conversation();
    json_t *b = body(&protocol_messages, talk, true);
    (void)state;

    assert_same(b, "{'model':'m','max_tokens':16384,'stream':true,"
                   "'system':[{'type':'text','text':'S','cache_control':{'type':'ephemeral'}}],"
                   "'tools':[{'name':'python','description':" DESCRIPTION ",'input_schema':" SCHEMA
                   ",'eager_input_streaming':true}],'messages':["
                   "{'role':'user','content':[{'type':'text','text':'Q'}]},"
                   "{'role':'assistant','content':[{'type':'text','text':'Look'},"
                   "{'type':'tool_use','id':'a','name':'python','input':{'code':'x'}},"
                   "{'type':'tool_use','id':'b','name':'python','input':{'code':'y'}}]},"
                   "{'role':'user','content':[{'type':'tool_result','tool_use_id':'a','content':["
                   "{'type':'text','text':'R'},{'type':'image','source':{'type':'base64','media_"
                   "type':'image/png',"
                   "'data':'UE5H'}}]},"
                   "{'type':'tool_result','tool_use_id':'b','is_error':true,'content':[{'type':'"
                   "text','text':'E'}]}]},"
                   "{'role':'assistant','content':[{'type':'text','text':'A'}]},"
                   "{'role':'user','content':[{'type':'text','text':'Q2','cache_control':{'type':'"
                   "ephemeral'}}]}]}");
    json_decref(b);
    json_decref(talk);
}

static void gemini(void **state)
{
    json_t *talk = conversation();
    (void)state;

    model.name = "gemini-2.5-pro";
    json_t *b = body(&protocol_gemini, talk, true);
    assert_same(
        b,
        "{'systemInstruction':{'parts':[{'text':'S'}]},'tools':[{'functionDeclarations':[{'name':'"
        "python',"
        "'description':" DESCRIPTION ",'parameters':" SCHEMA "}]}],'contents':["
        "{'role':'user','parts':[{'text':'Q'}]},"
        "{'role':'model','parts':[{'text':'Look'},{'functionCall':{'name':'python','args':{'code':'"
        "x'}}},"
        "{'functionCall':{'name':'python','args':{'code':'y'}}}]},"
        "{'role':'user','parts':[{'functionResponse':{'name':'python','response':{'output':'R'}}},"
        "{'functionResponse':{'name':'python','response':{'error':'E'}}},"
        "{'inlineData':{'mimeType':'image/png','data':'UE5H'}}]},"
        "{'role':'model','parts':[{'text':'A'}]},{'role':'user','parts':[{'text':'Q2'}]}]}");
    json_decref(b);
    json_decref(talk);
}

/* ---- a model without tools ---- */

static void without_tools_all_is_text(void **state)
{
    json_t *talk = conversation();
    (void)state;

    model.tools = false;
    json_t *b = body(&protocol_chat, talk, true);
    assert_null(json_object_get(b, "tools"));
    assert_same(
        json_object_get(b, "messages"),
        "[{'role':'system','content':'S'},{'role':'user','content':'Q'},"
        "{'role':'assistant','content':'Look\\n\\n```python\\nx\\n```\\n\\n```python\\ny\\n```'},"
        "{'role':'user','content':[{'type':'text','text':"
        "'Result of block 1:\\nR\\n\\nResult of block 2:\\nE'},"
        "{'type':'image_url','image_url':{'url':'data:image/png;base64,UE5H'}}]},"
        "{'role':'assistant','content':'A'},{'role':'user','content':'Q2'}]");
    json_decref(b);
    assert_member(&protocol_messages, talk, "messages",
                  "[{'role':'user','content':[{'type':'text','text':'Q'}]},"
                  "{'role':'assistant','content':[{'type':'text','text':"
                  "'Look\\n\\n```python\\nx\\n```\\n\\n```python\\ny\\n```'}]},"
                  "{'role':'user','content':[{'type':'text','text':"
                  "'Result of block 1:\\nR\\n\\nResult of block 2:\\nE'},{'type':'image','source':"
                  "{'type':'base64','media_type':'image/png','data':'UE5H'}}]},"
                  "{'role':'assistant','content':[{'type':'text','text':'A'}]},"
                  "{'role':'user','content':[{'type':'text','text':'Q2','cache_control':"
                  "{'type':'ephemeral'}}]}]");
    json_decref(talk);
}

static void blocks_stay_where_they_are(void **state)
{
    json_t *talk = parse(
        "[{'role':'user','text':'Q'},{'role':'model','text':'```python\\nx\\n```\\n','calls':["
        "{'id':'a','name':'python','arguments':'{\\'code\\':\\'x\\\\n\\'}'}]},"
        "{'role':'results','results':[{'id':'a','text':'R'}]},{'role':'user','text':'Q2'}]");
    (void)state;

    model.tools = false;
    assert_member(&protocol_chat, talk, "messages",
                  "[{'role':'system','content':'S'},{'role':'user','content':'Q'},"
                  "{'role':'assistant','content':'```python\\nx\\n```\\n'},"
                  "{'role':'user','content':'Result:\\nR\\n\\nQ2'}]");
    json_decref(talk);
}

static void a_fence_is_longer_than_those_in_the_code(void **state)
{
    json_t *talk = parse("[{'role':'user','text':'Q'},{'role':'model','text':'','calls':["
                         "{'id':'a','arguments':'{\\'code\\':\\'````\\'}'}]}]");
    (void)state;

    model.tools = false;
    assert_member(&protocol_chat, talk, "messages",
                  "[{'role':'system','content':'S'},{'role':'user','content':'Q'},"
                  "{'role':'assistant','content':'`````python\\n````\\n`````'},"
                  "{'role':'user','content':'Result:\\n[it was not run]'}]");
    json_decref(talk);
}

/* ---- what providers are particular about ---- */

static void every_call_has_its_result(void **state)
{
    json_t *talk = parse(
        "[{'role':'user','text':'Q'},{'role':'model','text':'','calls':["
        "{'id':'a','name':'python','arguments':'{}'},"
        "{'id':'b','name':'python','arguments':'{\\'code\\':\\'cut'}]},"
        "{'role':'results','results':[{'id':'a','text':''},{'id':'z','text':'nobody asked'}]},"
        "{'role':'user','text':'Q2'}]");
    (void)state;

    assert_member(&protocol_chat, talk, "messages",
                  "[{'role':'system','content':'S'},{'role':'user','content':'Q'},"
                  "{'role':'assistant','content':null,'tool_calls':["
                  "{'id':'a','type':'function','function':{'name':'python','arguments':'{}'}},"
                  "{'id':'b','type':'function','function':{'name':'python','arguments':"
                  "'{\\'code\\':\\'{\\\\\\'code\\\\\\':\\\\\\'cut\\'}'}}]},"
                  "{'role':'tool','tool_call_id':'a','content':''},"
                  "{'role':'tool','tool_call_id':'b','content':'[it was not run]'},"
                  "{'role':'user','content':'Q2'}]");
    assert_member(
        &protocol_messages, talk, "messages",
        "[{'role':'user','content':[{'type':'text','text':'Q'}]},"
        "{'role':'assistant','content':[{'type':'tool_use','id':'a','name':'python','input':{}},"
        "{'type':'tool_use','id':'b','name':'python','input':{'code':'{\\'code\\':\\'cut'}}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'a','content':[]},"
        "{'type':'tool_result','tool_use_id':'b','is_error':true,'content':["
        "{'type':'text','text':'[it was not run]'}]},"
        "{'type':'text','text':'Q2','cache_control':{'type':'ephemeral'}}]}]");
    json_decref(talk);
}

static void roles_alternate(void **state)
{
    json_t *talk = parse(
        "[{'role':'user','text':'Q'},{'role':'model','text':' '},{'role':'user','text':'Q2'}]");
    (void)state;

    assert_member(&protocol_messages, talk, "messages",
                  "[{'role':'user','content':[{'type':'text','text':'Q'},"
                  "{'type':'text','text':'Q2','cache_control':{'type':'ephemeral'}}]}]");
    assert_member(&protocol_gemini, talk, "contents",
                  "[{'role':'user','parts':[{'text':'Q'},{'text':'Q2'}]}]");
    assert_member(&protocol_chat, talk, "messages",
                  "[{'role':'system','content':'S'},{'role':'user','content':'Q\\n\\nQ2'}]");
    json_decref(talk);
}

static json_t *with_raw(const char *protocol, const char *content)
{
    cleanup_free char *text =
        xasprintf("[{'role':'user','text':'Q'},{'role':'model','text':'T','calls':[{'id':'a:0','"
                  "name':'python',"
                  "'arguments':'{\\'code\\':\\'x\\'}'}],'raw':{'protocol':'%s','content':%s}},"
                  "{'role':'results','results':[{'id':'a:0','text':'R'}]}]",
                  protocol, content);

    return parse(text);
}

static void what_it_wants_back_goes_back_as_it_was(void **state)
{
    (void)state;
    json_t *talk =
        with_raw("messages", "[{'type':'thinking','thinking':'t','signature':'s'},"
                             "{'type':'tool_use','id':'a:0','name':'python','input':{}}]");
    assert_member(
        &protocol_messages, talk, "messages",
        "[{'role':'user','content':[{'type':'text','text':'Q'}]},{'role':'assistant','content':["
        "{'type':'thinking','thinking':'t','signature':'s'},"
        "{'type':'tool_use','id':'a:0','name':'python','input':{}}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'a:0','content':["
        "{'type':'text','text':'R'}],'cache_control':{'type':'ephemeral'}}]}]");
    json_decref(talk);

    talk = with_raw("responses",
                    "[{'type':'reasoning','id':'r','summary':[],'encrypted_content':'#'},"
                    "{'type':'function_call','call_id':'a:0','name':'python','arguments':'{}'}]");
    assert_member(&protocol_responses, talk, "input",
                  "[{'type':'message','role':'user','content':[{'type':'input_text','text':'Q'}]},"
                  "{'type':'reasoning','id':'r','summary':[],'encrypted_content':'#'},"
                  "{'type':'function_call','call_id':'a:0','name':'python','arguments':'{}'},"
                  "{'type':'function_call_output','call_id':'a:0','output':'R'}]");
    json_decref(talk);

    talk = with_raw("gemini", "[{'text':'T'},{'functionCall':{'id':'i','name':'Python','args':{}},"
                              "'thoughtSignature':'#'}]");
    assert_member(&protocol_gemini, talk, "contents",
                  "[{'role':'user','parts':[{'text':'Q'}]},{'role':'model','parts':[{'text':'T'},"
                  "{'functionCall':{'id':'i','name':'Python','args':{}},'thoughtSignature':'#'}]},"
                  "{'role':'user','parts':[{'functionResponse':{'id':'i','name':'Python',"
                  "'response':{'output':'R'}}}]}]");
    json_decref(talk);

    talk = with_raw("chat", "{'reasoning_content':'hm','extra':{'a:0':{'google':1}}}");
    assert_member(&protocol_chat, talk, "messages",
                  "[{'role':'system','content':'S'},{'role':'user','content':'Q'},"
                  "{'role':'assistant','content':'T','reasoning_content':'hm','tool_calls':["
                  "{'id':'a:0','type':'function','extra_content':{'google':1},"
                  "'function':{'name':'python','arguments':'{\\'code\\':\\'x\\'}'}}]},"
                  "{'role':'tool','tool_call_id':'a:0','content':'R'}]");
    json_decref(talk);
}

/* Ids that are too long for one, or have signs that it refuses, are others there; the same for call and result. */
static void what_another_model_left_is_made_again(void **state)
{
    json_t *talk = with_raw("chat", "{'reasoning_content':'hm'}");
    char id[TELL_ID];
    (void)state;

    assert_string_equal(tell_id("toolu_01-x", id), "toolu_01-x");
    cleanup_free char *expected = xasprintf(
        "[{'role':'user','content':[{'type':'text','text':'Q'}]},{'role':'assistant','content':["
        "{'type':'text','text':'T'},{'type':'tool_use','id':'%s','name':'python','input':{'code':'"
        "x'}}]},"
        "{'role':'user','content':[{'type':'tool_result','tool_use_id':'%s','content':["
        "{'type':'text','text':'R'}],'cache_control':{'type':'ephemeral'}}]}]",
        tell_id("a:0", id), tell_id("a:0", id));
    assert_member(&protocol_messages, talk, "messages", expected);
    model.name = "gemini-3-pro";
    assert_member(&protocol_gemini, talk, "contents",
                  "[{'role':'user','parts':[{'text':'Q'}]},{'role':'model','parts':[{'text':'T'},"
                  "{'functionCall':{'name':'python','args':{'code':'x'}},"
                  "'thoughtSignature':'skip_thought_signature_validator'}]},"
                  "{'role':'user','parts':[{'functionResponse':{'name':'python',"
                  "'response':{'output':'R'}}}]}]");
    json_decref(talk);
}

/* ---- pictures ---- */

static json_t *ten_pictures(void)
{
    json_t *talk = parse("[{'role':'user','text':'Q'}]");

    for (int i = 0; i < 10; i++) {
        cleanup_free char *id = xasprintf("c%d", i);
        json_t *results = talk_results();
        json_t *picture = talk_picture("image/png", &"0123456789"[i], 1);
        json_array_append_new(talk, json_pack("{s:s, s:s, s:[{s:s, s:s, s:s}]}", "role", "model",
                                              "text", "", "calls", "id", id, "name", "python",
                                              "arguments", "{}"));
        talk_add_result(results, id, "R", false, json_pack("[o]", picture));
        json_array_append_new(talk, results);
    }
    return talk;
}

static size_t count(const json_t *j, const char *text)
{
    cleanup_free char *dump = json_dumps(j, JSON_COMPACT);
    size_t n = 0;

    for (const char *at = dump; (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void only_the_latest_pictures_are_sent(void **state)
{
    static const struct {
        const struct protocol *protocol;
        const char *sign;
    } all[] = {{&protocol_chat, "\"image_url\":{"},
               {&protocol_responses, "\"input_image\""},
               {&protocol_messages, "\"type\":\"image\""},
               {&protocol_gemini, "\"inlineData\""}};
    json_t *talk = ten_pictures();
    (void)state;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        json_t *b = body(all[i].protocol, talk, true);
        assert_int_equal(count(b, all[i].sign), TELL_PICTURES);
        assert_int_equal(count(b, "R\\n[1 picture not shown any more]"), 2);
        assert_int_equal(count(b, "OQ=="), 1);   /* the last, "9" */
        assert_int_equal(count(b, "\"MA=="), 0); /* the first */
        json_decref(b);
        model.sees = false;
        b = body(all[i].protocol, talk, true);
        assert_int_equal(count(b, all[i].sign), 0);
        assert_int_equal(count(b, "R\\n[1 picture not shown: you cannot see them]"), 10);
        json_decref(b);
        model.sees = true;
    }
    json_decref(talk);
}

/* ---- the rest of a request ---- */

static void bounds_of_tokens(void **state)
{
    json_t *talk = parse("[{'role':'user','text':'Q'}]");
    (void)state;

    model.max_tokens = 100;
    assert_member(&protocol_chat, talk, "max_tokens", "100");
    assert_member(&protocol_responses, talk, "max_output_tokens", "100");
    assert_member(&protocol_messages, talk, "max_tokens", "100");
    assert_member(&protocol_gemini, talk, "generationConfig", "{'maxOutputTokens':100}");
    model.base = "https://api.openai.com/v1";
    assert_member(&protocol_chat, talk, "max_completion_tokens", "100");
    json_t *b = body(&protocol_chat, talk, true);
    assert_null(json_object_get(b, "max_tokens"));
    json_decref(b);
    model.name = "gpt-4o";
    b = body(&protocol_responses, talk, true);
    assert_null(json_object_get(b, "include"));
    json_decref(b);
    json_decref(talk);
}

static void add_line(void *ctx, const char *line)
{
    buf_add_fmt(ctx, "%s;", line);
}

static void assert_way(const struct protocol *p, bool stream, const char *path, const char *headers)
{
    cleanup_buf struct buf way = {0}, lines = {0};

    p->path(&model, stream, &way);
    assert_string_equal(buf_text(&way), path);
    p->headers(&model, add_line, &lines);
    assert_string_equal(buf_text(&lines), headers);
}

static void paths_and_headers(void **state)
{
    (void)state;
    model.key = "K";
    assert_way(&protocol_chat, true, "/chat/completions", "Authorization: Bearer K;");
    assert_way(&protocol_responses, true, "/responses", "Authorization: Bearer K;");
    assert_way(&protocol_messages, false, "/messages",
               "anthropic-version: 2023-06-01;x-api-key: K;");
    assert_way(&protocol_gemini, false, "/models/m:generateContent", "x-goog-api-key: K;");
    assert_way(&protocol_gemini, true, "/models/m:streamGenerateContent?alt=sse",
               "x-goog-api-key: K;");
    model.key = NULL;
    model.name = "tunedModels/a b?c";
    assert_way(&protocol_chat, true, "/chat/completions", "");
    assert_way(&protocol_messages, true, "/messages", "anthropic-version: 2023-06-01;");
    assert_way(&protocol_gemini, false, "/tunedModels/a%20b%3Fc:generateContent", "");
}

static void messages_of_a_talk(void **state)
{
    json_t *user = talk_user("a\0b\xff", 4), *results = talk_results();
    (void)state;

    assert_same(user, "{'role':'user','text':'a\xef\xbf\xbd"
                      "b\xef\xbf\xbd'}");
    talk_add_result(results, "i", "t\xff", true, NULL);
    talk_add_result(results, "k", "t", false, json_array());
    assert_same(results, "{'role':'results','results':["
                         "{'id':'i','name':'python','text':'t\xef\xbf\xbd','failed':true},"
                         "{'id':'k','name':'python','text':'t'}]}");
    json_decref(user);
    json_decref(results);
}

#define test(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(chat),
        test(responses),
        test(messages),
        test(gemini),
        test(without_tools_all_is_text),
        test(blocks_stay_where_they_are),
        test(a_fence_is_longer_than_those_in_the_code),
        test(every_call_has_its_result),
        test(roles_alternate),
        test(what_it_wants_back_goes_back_as_it_was),
        test(what_another_model_left_is_made_again),
        test(only_the_latest_pictures_are_sent),
        test(bounds_of_tokens),
        test(paths_and_headers),
        test(messages_of_a_talk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
