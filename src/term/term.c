/* term: see term.h. */
#include "term/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_MIN 20u
#define COLUMNS_MAX 1000u

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static enum term_depth find_depth(void)
{
    const char *term = env("TERM"), *colorterm = env("COLORTERM");

    if (strcmp(colorterm, "truecolor") == 0 || strcmp(colorterm, "24bit") == 0 ||
        begins(term, "xterm-kitty") || begins(term, "foot") || strstr(term, "direct"))
        return DEPTH_TRUE;
    return strstr(term, "256") ? DEPTH_256 : DEPTH_16;
}

/* Which terminals show pictures as they leave the factory. A name is what the terminal puts into the variable, and
 * survives ssh only in TERM. */
static const struct {
    const char *variable, *begin;
    enum term_pictures pictures;
} showing[] = {
    {"TERM", "xterm-kitty", PICTURES_KITTY},
    {"TERM", "xterm-ghostty", PICTURES_KITTY},
    {"TERM_PROGRAM", "ghostty", PICTURES_KITTY},
    {"KITTY_WINDOW_ID", "", PICTURES_KITTY},
    {"TERM", "foot", PICTURES_SIXEL},
    {"TERM", "mlterm", PICTURES_SIXEL},
    {"TERM", "yaft", PICTURES_SIXEL},
    {"TERM", "contour", PICTURES_SIXEL},
    {"TERM_PROGRAM", "WezTerm", PICTURES_SIXEL},
    {"TERM_PROGRAM", "iTerm.app", PICTURES_SIXEL},
};

static enum term_pictures guess_pictures(void)
{
    /* A multiplexer draws the screen itself, and knows nothing of pictures whatever it runs in. */
    if (*env("TMUX") || *env("STY") || begins(env("TERM"), "screen") || begins(env("TERM"), "tmux"))
        return PICTURES_BLOCKS;
    for (unsigned i = 0; i < sizeof(showing) / sizeof(*showing); i++) {
        const char *value = env(showing[i].variable);
        if (*value && begins(value, showing[i].begin))
            return showing[i].pictures;
    }
    return PICTURES_BLOCKS;
}

static enum term_pictures find_pictures(const struct term *t)
{
    static const char *const names[] = {[PICTURES_NONE] = "none",
                                        [PICTURES_BLOCKS] = "blocks",
                                        [PICTURES_SIXEL] = "sixel",
                                        [PICTURES_KITTY] = "kitty"};
    const char *wish = env("RETORT_PICTURES");

    if (!t->tty)
        return PICTURES_NONE;
    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(wish, names[i]) == 0)
            return (enum term_pictures)i;
    }
    return t->moves && t->colours ? guess_pictures() : PICTURES_NONE;
}

static unsigned within(unsigned n, unsigned min, unsigned max)
{
    return n < min ? min : n > max ? max : n;
}

void term_measure(struct term *t, int fd)
{
    struct winsize size = {0};

    if (!t->tty || ioctl(fd, TIOCGWINSZ, &size) < 0)
        size = (struct winsize){0};
    t->columns = size.ws_col ? within(size.ws_col, COLUMNS_MIN, COLUMNS_MAX) : 80;
    t->rows = size.ws_row ? within(size.ws_row, 5, COLUMNS_MAX) : 24;
    /* Many say nothing of pixels; such a cell is what the sixel terminals of old had. */
    t->cell_width = size.ws_xpixel ? within(size.ws_xpixel / t->columns, 4, 64) : 10;
    t->cell_height = size.ws_ypixel ? within(size.ws_ypixel / t->rows, 8, 128) : 20;
}

void term_look(struct term *t, int fd)
{
    *t = (struct term){.tty = isatty(fd) == 1};
    t->moves = t->tty && *env("TERM") && strcmp(env("TERM"), "dumb") != 0;
    t->colours = t->moves && !*env("NO_COLOR");
    t->depth = find_depth();
    t->pictures = find_pictures(t);
    term_measure(t, fd);
}
