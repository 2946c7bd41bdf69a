/* tools: the table of tools, their arguments, and what all of them do. What clients see is tools.json. */
#include "gate/mcp/tools.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/words.h"

#define WORKSPACE "/mnt/data/"
#define LIMITS "{limits}" /* stands in a description for those of this server */

extern const char tools_json[];
extern const size_t tools_json_len;

static const struct mcp_tool tools[] = {
    {"run_python", tool_run_python},   {"list_files", tool_list_files},
    {"read_file", tool_read_file},     {"write_file", tool_write_file},
    {"rollback", tool_rollback},       {"fork", tool_fork},
    {"end_session", tool_end_session},
};

/* ---- what clients see ---- */

/* Lives as long as the process. */
static const json_t *shown_tools(void)
{
    static json_t *shown;

    if (!shown)
        shown = json_loadb(tools_json, tools_json_len, JSON_REJECT_DUPLICATES, NULL);
    if (!shown)
        bug("tools.json is broken");
    return shown;
}

const json_t *mcp_tool_described(const char *name)
{
    const json_t *tool;
    size_t i;

    json_array_foreach(shown_tools(), i, tool)
    {
        if (strcmp(json_string_value(json_object_get(tool, "name")), name) == 0)
            return tool;
    }
    return NULL;
}

static void limits_text(const struct limits *l, struct buf *ret)
{
    char size[WORDS_SIZE];
    const char *between = "";

    if (l->timeout_ms != LIMIT_NONE) {
        buf_add_fmt(ret, "%.15g s for one call", (double)l->timeout_ms / 1000);
        between = ", ";
    }
    if (l->memory != LIMIT_NONE) {
        buf_add_fmt(ret, "%s%s of memory", between, words_limit_size(l->memory, size));
        between = ", ";
    }
    if (l->disk != LIMIT_NONE)
        buf_add_fmt(ret, "%s%s of files", between, words_limit_size(l->disk, size));
    if (ret->len == 0)
        buf_add_text(ret, "none");
}

/* A tool as this server has it. */
static json_t *with_limits(const struct gate *g, json_t *tool)
{
    const char *description = json_string_value(json_object_get(tool, "description"));
    const char *at = strstr(description, LIMITS);
    cleanup_buf struct buf text = {0}, limits = {0};

    if (!at)
        return json_incref(tool);
    limits_text(&g->config->limits, &limits);
    buf_add(&text, description, (size_t)(at - description));
    buf_add(&text, limits.data, limits.len);
    buf_add_text(&text, at + strlen(LIMITS));
    json_t *own = json_copy(tool);
    json_object_set_new(own, "description", json_stringn(text.data, text.len));
    return own;
}

void mcp_tools_list(struct mcp_call *c)
{
    json_t *list = json_array();
    json_t *tool;
    size_t i;

    if (json_object_get(c->params, "cursor")) { /* there is one page */
        json_decref(list);
        mcp_error(c, MCP_INVALID_PARAMS, NULL, "there is no such cursor");
        return;
    }
    json_array_foreach(shown_tools(), i, tool)
    {
        json_array_append_new(list, with_limits(c->gate, tool));
    }
    mcp_result(c, json_pack("{s:o}", "tools", list));
}

/* ---- arguments ---- */

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* In a schema 2.0 is an integer too, as it is in JavaScript. */
static bool has_type(const json_t *value, const char *type)
{
    double number = json_number_value(value);

    if (strcmp(type, "number") == 0)
        return json_is_number(value);
    if (strcmp(type, "integer") == 0 && json_is_real(value))
        return number >= -9e15 && number <= 9e15 && number == (double)(json_int_t)number;
    return strcmp(type_name(value), type) == 0;
}

static int check_number(const char *name, const json_t *schema, const json_t *value, struct err *e)
{
    const json_t *least = json_object_get(schema, "minimum"),
                 *above = json_object_get(schema, "exclusiveMinimum"),
                 *most = json_object_get(schema, "maximum");
    double n = json_number_value(value);

    if (least && n < json_number_value(least))
        return err_set(e, 0, "\"%s\" must be at least %.15g", name, json_number_value(least));
    if (above && n <= json_number_value(above))
        return err_set(e, 0, "\"%s\" must be above %.15g", name, json_number_value(above));
    if (most && n > json_number_value(most))
        return err_set(e, 0, "\"%s\" must be at most %.15g", name, json_number_value(most));
    return 0;
}

static int check_member(const char *name, const json_t *schema, const json_t *value, struct err *e)
{
    const char *type = json_string_value(json_object_get(schema, "type"));

    if (!has_type(value, type))
        return err_set(e, 0, "\"%s\" must be of type %s, not %s", name, type, type_name(value));
    const json_t *least = json_object_get(schema, "minLength");
    if (least && json_string_length(value) < (size_t)json_integer_value(least))
        return err_set(e, 0, "\"%s\" must not be empty", name);
    return json_is_number(value) ? check_number(name, schema, value, e) : 0;
}

static int unknown_member(const char *name, const json_t *properties, struct err *e)
{
    cleanup_buf struct buf known = {0};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)properties, key, value)
    {
        buf_add_fmt(&known, "%s\"%s\"", known.len ? ", " : "", key);
    }
    return err_set(e, 0, "there is no argument \"%.100s\"; there are %s", name, buf_text(&known));
}

int tool_check(const json_t *schema, const json_t *arguments, struct err *e)
{
    const json_t *properties = json_object_get(schema, "properties");
    const char *name;
    json_t *value;
    size_t i;

    if (!json_is_object(arguments))
        return err_set(e, 0, "the arguments must be an object");
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value)
    {
        const json_t *member = json_object_get(properties, name);
        if (!member)
            return unknown_member(name, properties, e);
        if (!json_is_null(value) && check_member(name, member, value, e) < 0)
            return -1;
    }
    json_array_foreach(json_object_get(schema, "required"), i, value)
    {
        name = json_string_value(value);
        const json_t *given = json_object_get(arguments, name);
        if (!given || json_is_null(given))
            return err_set(e, 0, "the argument \"%s\" is missing", name);
    }
    return 0;
}

const char *tool_text(const json_t *arguments, const char *name)
{
    return json_string_value(json_object_get(arguments, name));
}

const char *tool_path(const char *path)
{
    if (strncmp(path, WORKSPACE, strlen(WORKSPACE)) == 0)
        path += strlen(WORKSPACE);
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return path;
}

/* ---- calling ---- */

static void fail(struct mcp_call *c, const char *text)
{
    mcp_result(c,
               json_pack("{s:[o],s:b}", "content", content_text(text, strlen(text)), "isError", 1));
}

void mcp_tools_call(struct mcp_call *c)
{
    const char *name = json_string_value(json_object_get(c->params, "name"));
    const json_t *arguments = json_object_get(c->params, "arguments");
    const json_t *shown = name ? mcp_tool_described(name) : NULL;
    static json_t *none;
    struct err e;

    if (!shown) {
        mcp_error(c, MCP_INVALID_PARAMS, NULL, "there is no tool \"%.100s\"", name ? name : "");
        return;
    }
    if (!none)
        none = json_object();
    if (!arguments || json_is_null(arguments))
        arguments = none;
    if (tool_check(json_object_get(shown, "inputSchema"), arguments, &e) < 0) {
        fail(c, e.text);
        return;
    }
    for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++)
        if (strcmp(tools[i].name, name) == 0) {
            tools[i].run(c, arguments);
            return;
        }
    bug("the tool %s is in tools.json alone", name);
}

/* ---- a tool at work ---- */

static void work_free(struct work *w)
{
    if (w->free)
        w->free(w);
    free(w->session);
    free(w);
}

static char *session_path(const char *session, const char *rest)
{
    cleanup_buf struct buf path = {0};

    buf_add_text(&path, "/v1/sessions/");
    uri_add(&path, session, strlen(session), false);
    buf_add_text(&path, rest);
    buf_text(&path);
    return buf_steal(&path);
}

static void end_session(struct work *w, const char *id)
{
    static const struct inner_events deaf = {0};
    cleanup_free char *path = session_path(id, "");

    inner_call(w->call->gate, w->call->holder, "DELETE", path, NULL, &deaf, NULL);
}

/* The session that it has made is of use to nobody. */
static void end_made(struct work *w)
{
    if (w->made)
        end_session(w, w->session);
}

/* Nor are those that it has not heard of yet: one, or the branches of one. */
static void end_untold(struct work *w)
{
    const struct inner_answer *a = inner_untold(w->asked);
    const char *id = a ? json_string_value(json_object_get(a->body, "id")) : NULL;
    const json_t *session;
    size_t i;

    if (!a || a->status != 201)
        return;
    if (id)
        end_session(w, id);
    json_array_foreach(json_object_get(a->body, "sessions"), i, session)
    {
        end_session(w, json_string_value(json_object_get(session, "id")));
    }
}

static void on_abandoned(void *work)
{
    struct work *w = work;

    if (w->asked) {
        end_untold(w);
        inner_cancel(w->asked);
    }
    end_made(w);
    work_free(w);
}

void *work_new(struct mcp_call *c, const json_t *arguments, size_t size,
               void (*free)(struct work *w))
{
    struct work *w = xcalloc(1, size);
    const char *session = tool_text(arguments, "session");

    *w = (struct work){.call = c, .arguments = arguments, .free = free};
    if (session && session[0]) { /* an empty one is how some models leave it out */
        size_t len =
            strnlen(session, SESSION_ID_MAX); /* no id has so many: the rest does not matter */
        w->session = xcalloc(1, len + 1);
        memcpy(w->session, session, len);
    }
    mcp_work(c, on_abandoned, w);
    return w;
}

void work_answered(void *work, const struct inner_answer *a)
{
    struct work *w = work;

    w->asked = NULL;
    w->then(w, a);
}

static const struct inner_events events = {.answered = work_answered};

void work_ask_with(struct work *w, const char *method, const char *path, json_t *body,
                   const struct inner_events *own,
                   void (*then)(struct work *w, const struct inner_answer *a))
{
    cleanup_free char *whole = session_path(w->session, path);

    w->then = then;
    w->asked = inner_call(w->call->gate, w->call->holder, method, whole, body, own, w);
}

void work_ask(struct work *w, const char *method, const char *path, json_t *body,
              void (*then)(struct work *w, const struct inner_answer *a))
{
    work_ask_with(w, method, path, body, &events, then);
}

void work_get(struct work *w, const char *path, uint64_t offset, uint64_t max,
              void (*then)(struct work *w, const struct inner_answer *a))
{
    cleanup_free char *whole = session_path(w->session, path);

    w->then = then;
    w->asked = inner_get(w->call->gate, w->call->holder, whole, offset, max, &events, w);
}

void work_put(struct work *w, const char *path, struct buf *contents,
              void (*then)(struct work *w, const struct inner_answer *a))
{
    cleanup_free char *whole = session_path(w->session, path);

    w->then = then;
    w->asked = inner_put(w->call->gate, w->call->holder, whole, contents, &events, w);
}

static void on_session(struct work *w, const struct inner_answer *a)
{
    const char *id = json_string_value(json_object_get(a->body, "id"));

    if (a->status != 201 || !id) {
        work_refused(w, a);
        return;
    }
    w->session = xstrdup(id);
    w->made = true;
    w->ready(w);
}

void work_make_session(struct work *w, json_t *body,
                       void (*then)(struct work *w, const struct inner_answer *a))
{
    w->then = then;
    w->asked = inner_call(w->call->gate, w->call->holder, "POST", "/v1/sessions", body, &events, w);
}

void work_in_session(struct work *w, void (*ready)(struct work *w))
{
    w->ready = ready;
    if (w->session)
        ready(w);
    else
        work_make_session(w, NULL, on_session);
}

/* ---- results ---- */

static json_t *result(json_t *content, json_t *structured, bool is_error)
{
    json_t *r = json_pack("{s:o}", "content", content);

    if (structured)
        json_object_set_new(r, "structuredContent", structured);
    if (is_error)
        json_object_set_new(r, "isError", json_true());
    return r;
}

struct mcp_call *work_end(struct work *w)
{
    struct mcp_call *c = w->call;

    mcp_work(c, NULL, NULL);
    work_free(w);
    return c;
}

void work_result(struct work *w, json_t *content, json_t *structured, bool is_error)
{
    mcp_result(work_end(w), result(content, structured, is_error));
}

void work_failed(struct work *w, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    end_made(w);
    work_result(w, json_pack("[o]", content_text(text, strlen(text))), NULL, true);
}

const char *answer_message(const struct inner_answer *a)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(a->body, "error"), "message"));

    return text ? text : "the server could not do it";
}

static const char *answer_code(const struct inner_answer *a)
{
    const char *code =
        json_string_value(json_object_get(json_object_get(a->body, "error"), "code"));

    return code ? code : "";
}

/* What the same sentence means to who has tools and no HTTP. */
static const char *remedy(const struct inner_answer *a)
{
    const char *code = answer_code(a);

    if (strcmp(code, "session_ended") == 0)
        return ". Leave \"session\" out in run_python to begin a new one";
    if (strcmp(code, "quota_sessions") == 0 || strcmp(code, "too_many_sessions") == 0)
        return ". end_session ends one";
    if (a->status == 503 || a->status == 429)
        return ". Try again in a few seconds";
    return "";
}

/* A file that is not there is said with its name; a session, with what to do. */
static bool is_no_session(const struct inner_answer *a)
{
    return a->status == 404 && strstr(answer_message(a), "session");
}

void work_refused(struct work *w, const struct inner_answer *a)
{
    if (is_no_session(a))
        work_failed(w,
                    "there is no session \"%.100s\": it may have ended. Leave \"session\" out in "
                    "run_python to begin a new one",
                    w->session ? w->session : "");
    else
        work_failed(w, "%s%s", answer_message(a), remedy(a));
}
