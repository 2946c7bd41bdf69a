/* input: see input.h. */
#include "cli/input.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

struct input {
    struct owner *owner;
    enum input_event event; /* why there is no (more) key */
    struct err err;

    EditLine *el; /* NULL: a pipe */
    History *history;
    const char *prompt;
    mbstate_t shift;

    struct buf pending; /* of a pipe: read, but not yet asked for */
    bool ended;
};

static void tend_terminal(struct input *in, int turn)
{
    if (turn & TURN_RESIZE)
        el_resize(in->el);
    if (turn & TURN_BACK) { /* a shell has used the terminal meanwhile */
        el_set(in->el, EL_PREP_TERM, 1);
        el_set(in->el, EL_REFRESH);
    }
}

/* Turn until stdin has something. false: in->event says why not. */
static bool wait_for_input(struct input *in)
{
    for (;;) {
        int turn = owner_turn(in->owner, STDIN_FILENO, &in->err);
        if (turn < 0)
            in->event = INPUT_FAILED;
        else if (turn & (TURN_STOP | TURN_CLOSED))
            in->event = INPUT_STOP;
        else if (turn & TURN_SIGINT)
            in->event = INPUT_INTERRUPTED;
        else {
            if (in->el)
                tend_terminal(in, turn);
            if (turn & TURN_INPUT)
                return true;
            continue;
        }
        return false;
    }
}

/* ---- a terminal ---- */

static char *show_prompt(EditLine *el)
{
    struct input *in;

    el_get(el, EL_CLIENTDATA, &in);
    return (char *)(uintptr_t)in->prompt; /* libedit does not write to it */
}

/* One character for libedit. Single bytes are read, so that what has not been asked for stays with
 * the terminal and can be seen by input_goes_on. */
static int get_char(EditLine *el, wchar_t *ret)
{
    struct input *in;

    el_get(el, EL_CLIENTDATA, &in);
    while (wait_for_input(in)) {
        char byte;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0) {
            in->event = INPUT_END;
            return 0;
        }
        size_t used = mbrtowc(ret, &byte, 1, &in->shift);
        if (used == (size_t)-2)
            continue;
        if (used == (size_t)-1) { /* not a character: forget it */
            in->shift = (mbstate_t){0};
            continue;
        }
        return 1;
    }
    return 0;
}

/* Tab. */
static unsigned char insert_indent(EditLine *el, int key)
{
    (void)key;
    return el_insertstr(el, "    ") < 0 ? CC_ERROR : CC_REFRESH;
}

static void open_history(struct input *in)
{
    const char *file = getenv("RETORT_HISTORY");
    HistEvent ev;

    in->history = history_init();
    if (!in->history)
        return;
    history(in->history, &ev, H_SETSIZE, 1000);
    history(in->history, &ev, H_SETUNIQUE, 1);
    if (file && *file)
        history(in->history, &ev, H_LOAD, file);
    el_set(in->el, EL_HIST, history, in->history);
}

static void open_terminal(struct input *in)
{
    /* Python is UTF-8; a person in the C locale may still type it. */
    if (MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
    in->el = el_init("retort", stdin, stdout, stderr);
    if (!in->el)
        return;
    el_set(in->el, EL_CLIENTDATA, in);
    el_set(in->el, EL_PROMPT, show_prompt);
    el_set(in->el, EL_EDITOR, "emacs");
    el_set(in->el, EL_SIGNAL, 1); /* Ctrl-Z and back; the others are the owner's */
    el_set(in->el, EL_GETCFN, get_char);
    el_set(in->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_wset(in->el, EL_ADDFN, L"indent", L"Insert four blanks", insert_indent);
    el_set(in->el, EL_BIND, "^I", "indent", NULL);
    open_history(in);
    el_source(in->el, NULL); /* ~/.editrc */
}

static void remember(struct input *in, const char *line)
{
    HistEvent ev;

    if (in->history && line[strspn(line, " \t\n")])
        history(in->history, &ev, H_ENTER, line);
}

static enum input_event terminal_line(struct input *in, const char *prefill, struct buf *ret)
{
    int n = 0;

    /* libedit would do it after the prompt; what is typed in between would be echoed twice, and a
     * Ctrl-D not be seen. */
    el_set(in->el, EL_PREP_TERM, 1);
    if (*prefill)
        el_push(in->el, prefill);
    const char *line = el_gets(in->el, &n);
    in->owner->out.midline = false; /* libedit has ended the line, or we do */
    if (!line || n <= 0) {
        if (in->event == INPUT_LINE)
            in->event = INPUT_END;
        fputs(in->event == INPUT_INTERRUPTED ? "^C\n" : "\n", stdout);
        fflush(stdout);
        return in->event;
    }
    remember(in, line);
    buf_add(ret, line, (size_t)n - (line[n - 1] == '\n'));
    return INPUT_LINE;
}

/* ---- a pipe ---- */

/* Read once. false: the end, or in->event says why. */
static bool fill(struct input *in)
{
    if (in->ended || in->pending.len > INPUT_LINE_MAX || !wait_for_input(in))
        return false;
    ssize_t n = read(STDIN_FILENO, buf_room(&in->pending, 64 << 10), 64 << 10);
    if (n > 0)
        in->pending.len += (size_t)n;
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        in->ended = true;
    return !in->ended;
}

static enum input_event pipe_line(struct input *in, struct buf *ret)
{
    const char *end;
    size_t looked = 0;

    while (!(end = in->pending.len > looked
                       ? memchr(in->pending.data + looked, '\n', in->pending.len - looked)
                       : NULL)) {
        looked = in->pending.len;
        if (fill(in))
            continue;
        if (in->event != INPUT_LINE)
            return in->event;
        if (in->pending.len == 0 || in->pending.len > INPUT_LINE_MAX)
            return INPUT_END;
        buf_add(&in->pending, "\n", 1); /* the last line had none */
    }
    size_t len = (size_t)(end - in->pending.data);
    buf_add(ret, in->pending.data, len - (len && end[-1] == '\r'));
    buf_drop(&in->pending, len + 1);
    return INPUT_LINE;
}

/* ---- both ---- */

struct input *input_new(struct owner *o)
{
    struct input *in = xcalloc(1, sizeof(*in));

    in->owner = o;
    in->prompt = "";
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        open_terminal(in);
    return in;
}

void input_free(struct input *in)
{
    const char *file = getenv("RETORT_HISTORY");
    HistEvent ev;

    if (in->history) {
        if (file && *file)
            history(in->history, &ev, H_SAVE, file);
        history_end(in->history);
    }
    if (in->el)
        el_end(in->el);
    buf_done(&in->pending);
    free(in);
}

bool input_is_terminal(const struct input *in)
{
    return in->el != NULL;
}

enum input_event input_line(struct input *in, const char *prompt, const char *prefill,
                            struct buf *ret, struct err *e)
{
    in->event = INPUT_LINE;
    in->prompt = prompt;
    outlet_flush(&in->owner->out);
    enum input_event event = in->el ? terminal_line(in, prefill, ret) : pipe_line(in, ret);
    if (event == INPUT_FAILED)
        *e = in->err;
    return event;
}

bool input_goes_on(struct input *in)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    if (in->el) /* cannot look into it; a whole paste is one piece */
        return poll(&p, 1, 0) > 0;
    if (in->pending.len == 0 && poll(&p, 1, 0) > 0)
        fill(in);
    return in->pending.len > 0 && strchr(" \t\n\r#", in->pending.data[0]);
}
