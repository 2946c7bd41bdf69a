/* prompt: see prompt.h. */
#include "agent/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/talk.h"
#include "agent/turns.h"
#include "base/fd.h"
#include "session/sanitise.h"
#include "session/utf8.h"
#include "session/words.h"

#define FILES_NAMED 100u
#define FILES_SHOWN 20u /* with their first lines */
#define HEAD_LINES 5u
#define HEAD_BYTES 600u
#define HEAD_FETCHED (64u << 20) /* a server sends a file whole: larger ones are not looked into */
#define NAME_BYTES 200u

extern const char prompt_md[];
extern const size_t prompt_md_len;

/* ---- data ---- */

static void make_id(char ret[33])
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        bug("getrandom: %s", strerror(errno));
    for (unsigned i = 0; i < sizeof(bytes); i++)
        snprintf(ret + 2 * (size_t)i, 3, "%02x", bytes[i]);
}

void prompt_add_data(struct buf *b, const char *text, size_t len)
{
    struct sanitiser s = {.no_colours = true};
    cleanup_buf struct buf plain = {0};
    char id[33];

    make_id(id);
    buf_add_fmt(b, "<data %s>\n", id);
    size_t before = b->len;
    sanitise(&s, text, len, &plain);
    sanitise_end(&s, &plain);
    turns_break(buf_text(&plain), plain.len, b);
    if (b->len > before && b->data[b->len - 1] != '\n')
        buf_add_text(b, "\n");
    buf_add_fmt(b, "</data %s>\n", id);
}

/* ---- files ---- */

struct look {
    struct file_seen {
        char *path;
        uint64_t size;
    } list[FILES_NAMED];
    unsigned n;
    unsigned more;
};

static void on_file(void *ctx, const char *path, uint64_t size, uint64_t mtime_ns)
{
    struct look *l = ctx;
    (void)mtime_ns;

    if (l->n == FILES_NAMED) {
        l->more++;
        return;
    }
    l->list[l->n++] = (struct file_seen){xstrdup(path), size};
}

static void look_done(struct look *l)
{
    for (unsigned i = 0; i < l->n; i++)
        free(l->list[i].path);
}

/* How much of what a file begins with is to be shown; 0: it is not text. */
static size_t head_of(const char *text, size_t len)
{
    size_t whole = utf8_whole(text, len), end = 0;

    if (memchr(text, '\0', len) || utf8_valid(text, len) < whole)
        return 0;
    for (unsigned line = 0; line < HEAD_LINES && end < whole; line++) {
        const char *newline = memchr(text + end, '\n', whole - end);
        end = newline ? (size_t)(newline - text) + 1 : whole;
    }
    return utf8_fit(text, end, HEAD_BYTES);
}

static void add_name(struct buf *lines, const struct file_seen *f)
{
    char size[WORDS_SIZE], name[NAME_BYTES];

    buf_add_fmt(lines, "%s, %s\n", sanitise_name(f->path, name, sizeof(name)),
                words_size(f->size, size));
}

/* The first lines, where it is text. */
static int add_head(struct buf *lines, struct guest *g, const struct file_seen *f, struct err *e)
{
    char text[4096];
    cleanup_fd int fd = -1;
    cleanup_fd int scratch = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

    int turn = guest_get(g, f->path, scratch, HEAD_FETCHED, &fd, e);
    if (turn > 0 || (turn < 0 && g->owner->lost))
        return turn;
    if (turn < 0) /* it is gone, or too large */
        return 0;
    ssize_t got = pread(fd, text, sizeof(text), 0);
    size_t len = got > 0 ? head_of(text, (size_t)got) : 0;
    if (len > 0) {
        buf_add_text(lines, "  begins:\n");
        buf_add(lines, text, len);
        if (text[len - 1] != '\n')
            buf_add_text(lines, " …\n");
    }
    return 0;
}

int prompt_look(struct prompt *p, struct guest *g, struct err *e)
{
    cleanup_buf struct buf lines = {0};
    struct look l = {0};
    int turn = guest_list(g, on_file, &l, e);

    for (unsigned i = 0; turn == 0 && i < l.n; i++) {
        add_name(&lines, &l.list[i]);
        if (i < FILES_SHOWN && l.list[i].size <= HEAD_FETCHED)
            turn = add_head(&lines, g, &l.list[i], e);
    }
    if (l.more)
        buf_add_fmt(&lines, "and %u more\n", l.more);
    p->files.len = 0;
    if (turn == 0 && l.n > 0)
        prompt_add_data(&p->files, lines.data, lines.len);
    look_done(&l);
    return turn;
}

void prompt_done(struct prompt *p)
{
    free(p->environment);
    buf_done(&p->files);
    *p = (struct prompt){0};
}

/* ---- the text ---- */

static void add_limits(struct buf *b, const struct limits *l)
{
    char size[WORDS_SIZE];

    if (l->timeout_ms != LIMIT_NONE)
        buf_add_fmt(b, "%g s for a cell, ", (double)l->timeout_ms / 1000);
    if (l->memory != LIMIT_NONE)
        buf_add_fmt(b, "%s of memory, ", words_limit_size(l->memory, size));
    if (l->disk != LIMIT_NONE)
        buf_add_fmt(b, "%s of files, ", words_limit_size(l->disk, size));
    buf_add_text(b, "no network.");
}

static void add_place(struct buf *b, struct prompt *p, const struct limits *limits, bool tools,
                      const char *place, size_t len)
{
    if (strncmp(place, "environment", len) == 0)
        buf_add_text(b, p->environment ? p->environment : "Python in an IPython shell on Linux.");
    else if (strncmp(place, "limits", len) == 0)
        add_limits(b, limits);
    else if (strncmp(place, "retries", len) == 0)
        buf_add_text(b, p->retries ? "A cell that fails is undone: variables and files are again "
                                     "what they were before it, so write it anew as a whole."
                                   : "A cell that fails leaves what it had done until then.");
    else if (strncmp(place, "files", len) == 0 && p->files.len > 0)
        buf_add_fmt(b, "Files that the user has given:\n%s", buf_text(&p->files));
    else if (strncmp(place, "files", len) == 0)
        buf_add_text(b, "There are no files yet.\n");
    else if (strncmp(place, "tool", len) == 0)
        buf_add_text(b, tools ? "The tool " TOOL_NAME " runs a cell of code in it and answers with "
                                "what came out."
                              : "To run a cell, write it as a block that begins with a line "
                                "```python and ends with a line ```, and end your message there: "
                                "the next one brings what came out. A message without such a block "
                                "is taken as your answer.");
}

char *prompt_text(struct prompt *p, const struct limits *limits, bool tools)
{
    struct buf b = {0};
    const char *at = prompt_md, *open;

    while ((open = strstr(at, "{{"))) {
        size_t len = strcspn(open + 2, "}");
        buf_add(&b, at, (size_t)(open - at));
        add_place(&b, p, limits, tools, open + 2, len);
        at = open + 2 + len + strlen("}}");
    }
    buf_add_text(&b, at);
    buf_add(&b, "", 1);
    return buf_steal(&b);
}
