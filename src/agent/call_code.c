/* call_code: the code in a call's arguments once they are whole, in the shapes that models give it.
 *
 *     {"code":"x = 1"}            as it was asked for; also with line feeds in the text as they are
 *     {"code":["x = 1","x"]}      lines
 *     {"source":"x = 1"}          another name, where there is but one
 *     "x = 1"   x = 1             the text alone
 *     {"code":"```python\nx\n```"}    and any of them fenced
 *
 * What is left over is told to the model, which then does it right. A text that was cut off is never taken for code
 * where that can be seen.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/blocks.h"
#include "agent/reply.h"
#include "session/cell_from_json.h"

#define ARGUMENT_VALUES 100000

static char *nothing(struct err *e, const char *why)
{
    err_set(e, 0, "%s Call the tool with {\"code\": \"…\"}, the code as one string of JSON.", why);
    return NULL;
}

/* A string of JSON as one of ours. */
static char *copy(const json_t *text, struct err *e)
{
    if (strlen(json_string_value(text)) != json_string_length(text))
        return nothing(e, "There is a NUL character in the code.");
    return xstrdup(json_string_value(text));
}

static char *join_lines(const json_t *lines, struct err *e)
{
    struct buf code = {0};
    size_t i;
    json_t *line;

    json_array_foreach(lines, i, line)
    {
        if (!json_is_string(line) || strlen(json_string_value(line)) != json_string_length(line)) {
            buf_done(&code);
            return nothing(e, "The code is not text.");
        }
        buf_add_fmt(&code, "%s%s", i ? "\n" : "", json_string_value(line));
    }
    return buf_steal(&code);
}

static char *of_object(json_t *object, struct err *e)
{
    json_t *code = json_object_get(object, "code");

    if (!code && json_object_size(object) == 1)
        code = json_object_iter_value(json_object_iter(object));
    if (json_is_string(code))
        return copy(code, e);
    if (json_is_array(code))
        return join_lines(code, e);
    return nothing(e, "There is no code in the call.");
}

static char *of_string(const json_t *string, struct err *e)
{
    json_t *inner = json_loadb(json_string_value(string), json_string_length(string),
                               JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    char *code = json_is_object(inner) ? of_object(inner, e) : copy(string, e);

    json_decref(inner);
    return code;
}

/* It is not JSON. */
static char *of_text(const char *text, size_t len, struct err *e)
{
    struct code_scan scan = {0};
    struct buf code = {0};

    code_scan(&scan, text, len, &code);
    if (code_scan_whole(&scan))
        return buf_steal(&code);
    buf_done(&code);
    if (*text == '{' || *text == '"')
        return nothing(e, "The arguments of the call are not valid JSON, or were cut off.");
    if (memchr(text, '\0', len))
        return nothing(e, "There is a NUL character in the code.");
    return xasprintf("%.*s", (int)len, text);
}

static char *any_shape(const char *text, size_t len, struct err *e)
{
    if (json_count_values(text, len) > ARGUMENT_VALUES) /* that is no object with a code in it */
        return of_text(text, len, e);
    json_t *j =
        json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    char *code = json_is_object(j)   ? of_object(j, e)
                 : json_is_string(j) ? of_string(j, e)
                                     : of_text(text, len, e);
    json_decref(j);
    return code;
}

/* Without the fence around all of it. */
static char *unfenced(char *code)
{
    struct block b;
    size_t at = 0, len = strlen(code);

    if (!block_next(code, len, &at, &b) || !(b.python || b.plain) || !b.closed ||
        !blocks_blank(code, b.begin) || !blocks_blank(code + b.end, len - b.end))
        return code;
    char *inner = block_code(&b);
    free(code);
    return inner;
}

char *call_code(const char *arguments, size_t len, struct err *e)
{
    while (len > 0 && strchr(" \t\r\n", *arguments) && *arguments) {
        arguments++;
        len--;
    }
    if (len == 0)
        return nothing(e, "There is no code in the call.");
    char *code = any_shape(arguments, len, e);
    if (!code)
        return NULL;
    code = unfenced(code);
    if (!blocks_blank(code, strlen(code)))
        return code;
    free(code);
    return nothing(e, "The code is empty.");
}
