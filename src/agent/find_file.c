/* find_file: see find_file.h. */
#include "agent/find_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/home.h"
#include "base/keyvalue.h"
#include "base/suggest.h"

#define FILE_LONGEST (64 << 10)
#define KEY_LONGEST 4096
#define TOKENS_MOST 100000000u

/* ---- keys ---- */

void key_free(char *key)
{
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
}

int key_check(const char *key, const char *from, struct err *e)
{
    size_t len = strlen(key);

    if (len == 0 || len > KEY_LONGEST)
        return err_set(e, 0, "%s holds no key", from);
    for (size_t i = 0; i < len; i++)
        if (key[i] <= ' ' || key[i] > '~')
            return err_set(e, 0, "%s holds something that is not a key", from);
    return 0;
}

static void warn_of_readers(const char *path, struct buf *notes)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & (S_IRGRP | S_IROTH))
        buf_add_fmt(notes, "others can read the key in %s: chmod 600 helps\n", path);
}

int key_read(const char *path, char **ret, struct buf *notes, struct err *e)
{
    char text[KEY_LONGEST + 3];

    if (fd_get_text(AT_FDCWD, path, text, sizeof(text), e) < 0)
        return err_wrap(e, "cannot read the key's file");
    for (size_t n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]); n--)
        text[n - 1] = '\0';
    int r = key_check(text, path, e);
    if (r == 0) {
        *ret = xstrdup(text);
        warn_of_readers(path, notes);
    }
    explicit_bzero(text, sizeof(text));
    return r;
}

/* ---- the file ---- */

enum kind { WORD, KEY, KEY_FILE, YES_NO, COUNT, PRICE };

static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
} keys[] = {
    {"model", WORD, offsetof(struct model_file, model)},
    {"base_url", WORD, offsetof(struct model_file, base_url)},
    {"protocol", WORD, offsetof(struct model_file, protocol)},
    {"key_file", KEY_FILE, 0},
    {"key", KEY, 0},
    {"tools", YES_NO, offsetof(struct model_file, tools)},
    {"vision", YES_NO, offsetof(struct model_file, sees)},
    {"stream", YES_NO, offsetof(struct model_file, streams)},
    {"max_tokens", COUNT, offsetof(struct model_file, max_tokens)},
    {"price_in", PRICE, offsetof(struct model_file, price_in)},
    {"price_out", PRICE, offsetof(struct model_file, price_out)},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

struct reading {
    struct model_file *file;
    struct buf *notes;
};

/* No shell has expanded it, and nobody knows which directory is meant. */
static int read_key_file(struct reading *r, const char *path, struct err *e)
{
    const char *home = strncmp(path, "~/", 2) == 0 ? home_directory() : NULL;
    cleanup_free char *whole = home ? xasprintf("%s/%s", home, path + 2) : xstrdup(path);

    if (whole[0] != '/')
        return err_set(e, 0, "key_file begins with / or ~/");
    return key_read(whole, &r->file->key, r->notes, e);
}

static int set_key(struct reading *r, const char *value, struct err *e)
{
    if (key_check(value, "key", e) < 0)
        return -1;
    r->file->key = xstrdup(value);
    warn_of_readers(r->file->path, r->notes);
    return 0;
}

static int set_word(char **at, const char *value, struct err *e)
{
    if (!*value)
        return err_set(e, 0, "there is nothing behind the \"=\"");
    free(*at);
    *at = xstrdup(value);
    return 0;
}

static int set_yes_no(enum model_say *at, const char *value, struct err *e)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return err_set(e, 0, "it is yes or no");
    *at = value[0] == 'y' ? SAY_YES : SAY_NO;
    return 0;
}

static int set_count(unsigned *at, const char *value, struct err *e)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);

    if (errno || *end || value[0] < '0' || value[0] > '9' || n == 0 || n > TOKENS_MOST)
        return err_set(e, 0, "it is a number from 1 to %u", TOKENS_MOST);
    *at = (unsigned)n;
    return 0;
}

static int set_price(double *at, const char *value, struct err *e)
{
    char *end;
    double price = strtod(value, &end);

    if (end == value || *end || !isfinite(price) || price < 0)
        return err_set(e, 0, "it is the price of a million tokens, as 2.5");
    *at = price;
    return 0;
}

static int set(struct reading *r, size_t i, const char *value, struct err *e)
{
    void *at = (char *)r->file + keys[i].offset;
    bool again = (keys[i].kind == KEY || keys[i].kind == KEY_FILE) && r->file->key;

    if (again)
        return err_set(e, 0, "there are two keys");
    switch (keys[i].kind) {
    case WORD:
        return set_word(at, value, e);
    case KEY:
        return set_key(r, value, e);
    case KEY_FILE:
        return read_key_file(r, value, e);
    case YES_NO:
        return set_yes_no(at, value, e);
    case COUNT:
        return set_count(at, value, e);
    case PRICE:
        return set_price(at, value, e);
    }
    return -1;
}

static int take(void *ctx, unsigned line, const char *key, char *value, struct err *e)
{
    const char *best = NULL;
    unsigned distance = 0;
    (void)line;

    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(key, keys[i].name) == 0)
            return set(ctx, i, value, e) < 0 ? err_wrap(e, "%s", key) : 0;
        suggest_offer(key, keys[i].name, &best, &distance);
    }
    return err_set(e, 0, "there is no setting \"%s\"%s%s%s", key, best ? "; did you mean \"" : "",
                   best ? best : "", best ? "\"?" : "");
}

static char *usual_path(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = home_directory();

    if (config && config[0] == '/')
        return xasprintf("%s/retort/model.conf", config);
    return home ? xasprintf("%s/.config/retort/model.conf", home) : NULL;
}

/* keyvalue_each says what it does not understand, which may be a key without its "key =". */
static int parse(struct reading *r, char *text, struct err *e)
{
    unsigned number = 1;

    for (const char *line = text; *line; number++) {
        size_t len = strcspn(line, "\n"), blank = strspn(line, " \t\r");
        if (blank < len && line[blank] != '#' && !memchr(line, '=', len))
            return err_set(e, 0, "%s:%u: the line is not \"setting = value\"", r->file->path,
                           number);
        line += len + (line[len] == '\n');
    }
    return keyvalue_each(r->file->path, text, take, r, e);
}

static int none(struct model_file *f)
{
    model_file_done(f);
    return 0;
}

int model_file_read(struct model_file *ret, const char *path, struct buf *notes, struct err *e)
{
    struct model_file f = {.path = path ? xstrdup(path) : usual_path()};
    char *text = xcalloc(1, FILE_LONGEST);
    struct err why;
    int r = f.path ? fd_get_text(AT_FDCWD, f.path, text, FILE_LONGEST, &why) : -1;

    if (r == 0)
        r = parse(&(struct reading){.file = &f, .notes = notes}, text, e);
    else if (!path && (!f.path || why.code == ENOENT || why.code == ENOTDIR))
        r = none(&f);
    else
        *e = why;
    explicit_bzero(text, FILE_LONGEST);
    free(text);
    if (r < 0)
        model_file_done(&f);
    else
        *ret = f;
    return r;
}

void model_file_done(struct model_file *f)
{
    free(f->path);
    free(f->model);
    free(f->base_url);
    free(f->protocol);
    key_free(f->key);
    *f = (struct model_file){0};
}
