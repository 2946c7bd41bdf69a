/* reply: see reply.h. */
#include "agent/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/blocks.h"
#include "agent/talk.h"
#include "session/utf8.h"

#define NAME_MAX_CHARS 64
#define ID_CHARS 9 /* Mistral takes ids of nine letters and digits only, and nobody minds them */

void reply_init(struct reply *r, const struct reply_view *view)
{
    *r = (struct reply){.view = view};
}

void reply_done(struct reply *r)
{
    for (unsigned i = 0; i < r->n_calls; i++) {
        free(r->calls[i].id);
        free(r->calls[i].name);
        buf_done(&r->calls[i].arguments);
    }
    buf_done(&r->text);
    buf_done(&r->part_text);
    json_decref(r->raw);
    json_decref(r->part);
    *r = (struct reply){0};
}

/* ---- bounds ---- */

static int count(struct reply *r, size_t bytes, struct err *e)
{
    if (bytes > REPLY_BYTES - r->bytes)
        return err_set(e, EFBIG, "the model's reply has more than %u bytes", REPLY_BYTES);
    r->bytes += bytes;
    return 0;
}

int reply_count_raw(struct reply *r, size_t bytes, struct err *e)
{
    if (bytes > REPLY_RAW_BYTES - r->raw_bytes)
        return err_set(e, EFBIG, "the model's reply brings more than %u bytes to send back",
                       REPLY_RAW_BYTES);
    r->raw_bytes += bytes;
    return 0;
}

/* ---- text and calls ---- */

int reply_add_text(struct reply *r, const char *text, size_t len, struct err *e)
{
    if (len == 0)
        return 0;
    if (count(r, len, e) < 0)
        return -1;
    buf_add(&r->text, text, len);
    if (r->view && r->view->text)
        r->view->text(r->view->ctx, text, len);
    return 0;
}

static char *made_up_id(void)
{
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char random[ID_CHARS];
    char *id = xcalloc(1, ID_CHARS + 1);

    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        bug("no random bytes");
    for (size_t i = 0; i < ID_CHARS; i++)
        id[i] = signs[random[i] % (sizeof(signs) - 1)];
    return id;
}

static bool is_taken(const struct reply *r, const char *id)
{
    for (unsigned i = 0; i < r->n_calls; i++)
        if (strcmp(r->calls[i].id, id) == 0)
            return true;
    return false;
}

/* What a provider takes as the name of a tool. Local models add to it what belongs to their templates
 * ("python<|channel|>…"), and a conversation with that in it would be refused from then on. */
static char *clean_name(const char *name)
{
    size_t n =
        name ? strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") : 0;

    return n > 0 && n <= NAME_MAX_CHARS ? xasprintf("%.*s", (int)n, name) : xstrdup(TOOL_NAME);
}

int reply_add_call(struct reply *r, unsigned number, const char *id, const char *name,
                   struct err *e)
{
    bool own = id && *id && !is_taken(r, id);

    if (r->n_calls == REPLY_CALLS)
        return err_set(e, 0, "the model makes more than %u calls at once", REPLY_CALLS);
    if (count(r, own ? strlen(id) : 0, e) < 0)
        return -1;
    r->calls[r->n_calls++] = (struct reply_call){
        .id = own ? xstrdup(id) : made_up_id(), .name = clean_name(name), .number = number};
    return 0;
}

struct reply_call *reply_find_call(struct reply *r, unsigned number)
{
    for (unsigned i = r->n_calls; i-- > 0;)
        if (r->calls[i].number == number)
            return &r->calls[i];
    return NULL;
}

static void show_code(struct reply *r, struct reply_call *c, const char *code, size_t len)
{
    if (len > 0 && r->view && r->view->code)
        r->view->code(r->view->ctx, (unsigned)(c - r->calls), code, len);
    c->shown += len;
}

int reply_add_arguments(struct reply *r, unsigned number, const char *text, size_t len,
                        struct err *e)
{
    struct reply_call *c = reply_find_call(r, number);
    cleanup_buf struct buf code = {0};

    if (!c)
        return err_set(e, 0, "the server sends the arguments of a call that it has not begun");
    if (count(r, len, e) < 0)
        return -1;
    buf_add(&c->arguments, text, len);
    code_scan(&c->scan, text, len, &code);
    show_code(r, c, code.data, code.len);
    return 0;
}

/* ---- its end ---- */

static void show_rest(struct reply *r, struct reply_call *c)
{
    struct err e;

    if (c->shown > 0)
        return;
    cleanup_free char *code = call_code(c->arguments.data, c->arguments.len, &e);
    if (code)
        show_code(r, c, code, strlen(code));
}

int reply_finish(struct reply *r, struct err *e)
{
    if (!r->over)
        return err_set(e, 0, "the model's reply broke off");
    if (r->n_calls == 0 && !r->cut && !r->refused && blocks_blank(r->text.data, r->text.len))
        return err_set(e, 0, "the model's reply is empty");
    for (unsigned i = 0; i < r->n_calls; i++)
        show_rest(r, &r->calls[i]);
    return 0;
}

static void add_block(struct reply *r, const struct block *b)
{
    cleanup_free char *code = block_code(b);
    cleanup_free char *valid = utf8_repaired(code, strlen(code));
    json_t *arguments = json_pack("{s:s}", "code", valid);
    cleanup_free char *text = json_dumps(arguments, JSON_COMPACT);
    struct reply_call *c = &r->calls[r->n_calls];

    json_decref(arguments);
    *c = (struct reply_call){.id = made_up_id(), .name = xstrdup(TOOL_NAME), .number = r->n_calls};
    c->shown = strlen(valid); /* as text */
    buf_add_text(&c->arguments, text);
    r->n_calls++;
}

void reply_take_blocks(struct reply *r)
{
    struct block b;
    size_t at = 0;

    if (r->n_calls > 0)
        return;
    while (r->n_calls < REPLY_CALLS && block_next(r->text.data, r->text.len, &at, &b))
        if (b.python && (b.closed || !r->cut) && !blocks_blank(b.text, b.len))
            add_block(r, &b);
}

json_t *reply_message(const struct reply *r, const char *protocol)
{
    cleanup_free char *text = utf8_repaired(r->text.data, r->text.len);
    json_t *message = json_pack("{s:s, s:s}", "role", "model", "text", text);
    json_t *calls = json_array();

    for (unsigned i = 0; i < r->n_calls; i++) {
        const struct reply_call *c = &r->calls[i];
        cleanup_free char *arguments = utf8_repaired(c->arguments.data, c->arguments.len);
        json_array_append_new(calls, json_pack("{s:s, s:s, s:s}", "id", c->id, "name", c->name,
                                               "arguments", arguments));
    }
    if (r->n_calls > 0)
        json_object_set(message, "calls", calls);
    json_decref(calls);
    if (r->raw)
        json_object_set_new(message, "raw",
                            json_pack("{s:s, s:O}", "protocol", protocol, "content", r->raw));
    return message;
}
