/* point_json: see point_json.h. */
#include "session/point_json.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"

#define LOST_MAX (64u << 10) /* bytes */

static json_t *lines_json(const char *text)
{
    json_t *list = json_array();

    while (*text) {
        size_t len = strcspn(text, "\n");
        json_array_append_new(list, json_stringn(text, len));
        text += len + (text[len] == '\n');
    }
    return list;
}

json_t *point_json(const struct session_point *p)
{
    char time[CLOCK_TEXT];

    return json_pack("{s:I,s:s,s:I,s:o}", "n", (json_int_t)p->up_to, "created_at",
                     clock_text(p->taken_ms, time), "memory", (json_int_t)p->memory, "lost",
                     lines_json(p->lost));
}

static int lost_from_json(const json_t *list, struct buf *ret)
{
    const json_t *line;
    size_t i;

    if (!json_is_array(list))
        return -1;
    json_array_foreach(list, i, line)
    {
        if (!json_is_string(line) || ret->len + json_string_length(line) > LOST_MAX)
            return -1;
        buf_add_fmt(ret, "%s%s", i ? "\n" : "", json_string_value(line));
    }
    return 0;
}

int point_from_json(const json_t *j, struct session_point *ret, char **ret_lost, struct err *e)
{
    cleanup_buf struct buf lost = {0};
    const json_t *n = json_object_get(j, "n"), *memory = json_object_get(j, "memory");
    const char *time = json_string_value(json_object_get(j, "created_at"));
    struct session_point p = {.n = (uint32_t)json_integer_value(n),
                              .memory = (uint64_t)json_integer_value(memory)};

    if (!json_is_integer(n) || json_integer_value(n) != p.n || !json_is_integer(memory) || !time ||
        clock_from_text(time, &p.taken_ms) < 0 ||
        lost_from_json(json_object_get(j, "lost"), &lost) < 0)
        return err_set(e, 0, "a checkpoint is not as it should be");
    p.up_to = p.n;
    p.lost = *ret_lost = xstrdup(buf_text(&lost));
    *ret = p;
    return 0;
}
