/* keyvalue: see keyvalue.h. */
#include "base/keyvalue.h"

#include <string.h>

/* Cut blanks off both ends, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    for (size_t n = strlen(text); n && strchr(" \t\r", text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

static void cut_comment(char *line)
{
    for (char *p = line; (p = strchr(p, '#')); p++) {
        if (p == line || p[-1] == ' ' || p[-1] == '\t') {
            *p = '\0';
            return;
        }
    }
}

static int take_line(char *line, unsigned number, keyvalue_take *take, void *ctx, struct err *e)
{
    cut_comment(line);
    line = trim(line);
    if (!*line)
        return 0;
    char *equals = strchr(line, '=');
    if (!equals)
        return err_set(e, 0, "\"%s\" is not \"key = value\"", line);
    *equals = '\0';
    return take(ctx, number, trim(line), trim(equals + 1), e);
}

int keyvalue_each(const char *path, char *text, keyvalue_take *take, void *ctx, struct err *e)
{
    unsigned number = 1;

    for (char *line = text; line; number++) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        if (take_line(line, number, take, ctx, e) < 0)
            return err_wrap(e, "%s:%u", path, number);
        line = end ? end + 1 : NULL;
    }
    return 0;
}
