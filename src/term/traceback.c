/* traceback: see traceback.h.
 *
 * It is paragraphs: one for each frame, with a rule before each exception that led to the next, and the message as the
 * last. A short one is shown whole; of a long one those frames of the last exception that are in cells.
 */
#include "term/traceback.h"

#include <stdbool.h>
#include <string.h>

#define SHORT 12 /* lines */
#define MESSAGE_LINES 12
#define FRAMES_MAX 4

struct line {
    const char *text;
    size_t len;
};

/* false: there is none any more. */
static bool next_line(const char **at, struct line *ret)
{
    if (!**at)
        return false;
    const char *newline = strchr(*at, '\n');
    *ret = (struct line){*at, newline ? (size_t)(newline - *at) : strlen(*at)};
    *at += ret->len + (newline != NULL);
    return true;
}

static bool begins(const struct line *l, const char *with)
{
    return l->len >= strlen(with) && memcmp(l->text, with, strlen(with)) == 0;
}

static bool is_rule(const struct line *l)
{
    return begins(l, "--------------------") && strspn(l->text, "-") == l->len;
}

/* "KeyError           Traceback (most recent call last)" */
static bool is_head(const struct line *l)
{
    return memmem(l->text, l->len, "Traceback (most recent", 22) != NULL;
}

/* Where the last exception begins, and how many lines it has. */
static const char *last_exception(const char *at, unsigned *ret_lines)
{
    const char *from = at;
    struct line l;

    *ret_lines = 0;
    while (next_line(&at, &l)) {
        if (is_rule(&l)) {
            from = at;
            *ret_lines = 0;
        } else {
            ++*ret_lines;
        }
    }
    return from;
}

static unsigned count_cell_frames(const char *at)
{
    unsigned n = 0;

    for (struct line l; next_line(&at, &l);)
        n += begins(&l, "Cell In[");
    return n;
}

void traceback_lines(const char *traceback, const char *name,
                     void (*line)(void *ctx, enum traceback_part part, const char *text,
                                  size_t len),
                     void *ctx)
{
    unsigned lines, message = 0;
    const char *at = last_exception(traceback, &lines);
    unsigned frames = count_cell_frames(at), seen = 0;
    bool shown = lines <= SHORT, blank = false;

    for (struct line l; next_line(&at, &l);) {
        blank = blank || l.len == 0;
        if (l.len == 0 || is_head(&l))
            continue;
        if (message || begins(&l, name)) {
            if (message++ < MESSAGE_LINES)
                line(ctx, TRACEBACK_MESSAGE, l.text, l.len);
            continue;
        }
        if (begins(&l, "Cell In["))
            shown = ++seen + FRAMES_MAX > frames;
        else if (blank && lines > SHORT)
            shown = false;
        blank = false;
        if (shown)
            line(ctx, begins(&l, "-") ? TRACEBACK_HERE : TRACEBACK_FRAME, l.text, l.len);
    }
}
