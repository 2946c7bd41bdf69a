/* events: see events.h. */
#include "guest/events.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

void events_init(struct events *ev, size_t max,
                 int (*tell)(void *ctx, const char *name, const char *data, size_t len,
                             struct err *e),
                 void *ctx)
{
    *ev = (struct events){.max = max, .tell = tell, .ctx = ctx};
}

void events_done(struct events *ev)
{
    buf_done(&ev->line);
    buf_done(&ev->data);
}

static int too_much(const struct events *ev, struct err *e)
{
    return err_set(e, EFBIG, "the server sent an event of more than %zu bytes", ev->max);
}

/* An empty line: what was gathered is an event. */
static int dispatch(struct events *ev, struct err *e)
{
    int r = 0;

    if (ev->has_data)
        r = ev->tell(ev->ctx, ev->name[0] ? ev->name : "message", buf_text(&ev->data), ev->data.len,
                     e);
    buf_done(&ev->data); /* one may have been huge */
    ev->has_data = false;
    ev->name[0] = '\0';
    return r;
}

static bool is_field(const char *line, size_t len, const char *name)
{
    return len == strlen(name) && memcmp(line, name, len) == 0;
}

static void set_name(struct events *ev, const char *value, size_t len)
{
    if (len >= sizeof(ev->name) || memchr(value, '\0', len)) {
        strcpy(ev->name, "?");
        return;
    }
    memcpy(ev->name, value, len);
    ev->name[len] = '\0';
}

static int take_line(struct events *ev, const char *line, size_t len, struct err *e)
{
    if (!ev->begun && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        len -= 3;
    }
    ev->begun = true;
    if (len == 0)
        return dispatch(ev, e);
    const char *colon = memchr(line, ':', len);
    size_t field = colon ? (size_t)(colon - line) : len;
    const char *value = line + field + (colon != NULL);
    size_t value_len = len - field - (colon != NULL);
    if (value_len > 0 && *value == ' ') {
        value++;
        value_len--;
    }
    if (is_field(line, field, "event"))
        set_name(ev, value, value_len);
    if (!is_field(line, field, "data"))
        return 0;
    if (value_len + 1 > ev->max - ev->data.len)
        return too_much(ev, e);
    if (ev->has_data)
        buf_add(&ev->data, "\n", 1);
    buf_add(&ev->data, value, value_len);
    ev->has_data = true;
    return 0;
}

/* How many bytes there are before the next end of a line, or all. */
static size_t line_part(const char *data, size_t len)
{
    const char *lf = memchr(data, '\n', len);
    size_t n = lf ? (size_t)(lf - data) : len;
    const char *cr = memchr(data, '\r', n);

    return cr ? (size_t)(cr - data) : n;
}

int events_feed(struct events *ev, const char *data, size_t len, struct err *e)
{
    while (len > 0) {
        if (ev->after_cr && *data == '\n') {
            data++;
            len--;
        }
        ev->after_cr = false;
        size_t n = line_part(data, len);
        if (n > ev->max - ev->line.len)
            return too_much(ev, e);
        bool whole = ev->line.len == 0 && n < len; /* the usual case: nothing is copied */
        if (!whole)
            buf_add(&ev->line, data, n);
        if (n == len)
            return 0;
        int r = whole ? take_line(ev, data, n, e) : take_line(ev, ev->line.data, ev->line.len, e);
        ev->line.len = 0;
        if (ev->line.cap > (1u << 20))
            buf_done(&ev->line);
        if (r < 0)
            return -1;
        ev->after_cr = data[n] == '\r';
        data += n + 1;
        len -= n + 1;
    }
    return 0;
}
