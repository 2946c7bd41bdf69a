/* show: see show.h. */
#include "cli/show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "session/cell.h"
#include "session/words.h"
#include "wire/proto.h"

#define NAME_SHOWN 300 /* bytes of a guest's file name in a message */

/* ---- outputs as they come ---- */

static void on_text(void *ctx, enum output_kind kind, const char *text, size_t len)
{
    struct show *s = ctx;

    if (!s->quiet)
        outlet_guest(s->out, kind == OUTPUT_STDERR ? 2 : 1, text, len);
}

/* The type is the guest's word: only names from this table become part of a file name. */
static const char *extension(const char *type)
{
    static const char *const table[][2] = {
        {"image/png", "png"},   {"image/jpeg", "jpg"},  {"image/svg+xml", "svg"},
        {"image/gif", "gif"},   {"image/webp", "webp"}, {"image/bmp", "bmp"},
        {"image/tiff", "tiff"},
    };

    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i][0], type) == 0)
            return table[i][1];
    }
    return "image";
}

static void show_figure(struct show *s, const struct mime_part *image)
{
    unsigned number = ++s->figures;
    char type[64], size[WORDS_SIZE];
    struct err e;

    sanitise_name(image->type, type, sizeof(type));
    words_size(image->len, size);
    if (!s->export) {
        if (!s->quiet)
            outlet_note(s->out, "figure %u: %s, %s (use -o DIR to keep it)", number, type, size);
        return;
    }
    unsigned saved = number;
    const char *ext = extension(image->type);
    if (export_figure(s->export, &saved, ext, image->data, image->len, &e) < 0) {
        outlet_note(s->out, "figure %u: %s", number, e.text);
        s->failed = true;
    } else if (!s->quiet) {
        outlet_note(s->out, "figure %u: %s, %s, saved as %s/figure-%u.%s", number, type, size,
                    s->export->name, saved, ext);
    }
}

static void on_display(void *ctx, const struct output *o)
{
    struct show *s = ctx;
    const struct mime_part *image = output_picture(o), *text = output_part(o, "text/plain");

    if (text && !s->quiet && (!image || o->kind == OUTPUT_RESULT)) {
        bool labelled = o->kind == OUTPUT_RESULT && s->result_label[0];
        if (labelled) {
            outlet_fresh_line(s->out);
            /* A table begins on a line of its own, so that its columns stay aligned. */
            const char *gap = memchr(text->data, '\n', text->len) ? "\n" : "";
            outlet_say(s->out, 1, "%s%s", s->result_label, gap);
        }
        outlet_guest(s->out, 1, text->data, text->len);
        outlet_guest_end(s->out);
        outlet_say(s->out, 1, "\n");
    }
    if (image)
        show_figure(s, image);
}

void show_init(struct show *s, struct outlet *out, const struct limits *limits,
               struct export *export, bool quiet)
{
    *s = (struct show){
        .out = out, .limits = limits, .export = export, .quiet = quiet, .result_label = ""};
    s->view = (struct guest_view){.text = on_text, .display = on_display, .ctx = s};
}

/* ---- the end of a cell ---- */

static void show_error(struct show *s, const struct cell *c)
{
    const char *traceback = c->error.traceback;

    if (!c->error.name)
        return;
    if (c->status == CELL_CRASHED) { /* our own words about its end */
        outlet_note(s->out, "%s", c->error.value);
        return;
    }
    /* sys.exit(3) says nothing, as in Python itself. */
    if (c->left && c->error.value[strspn(c->error.value, "-0123456789")] == '\0')
        return;
    if (s->out->tty[2])
        outlet_fresh_line(s->out);
    if (traceback && *traceback) {
        outlet_guest(s->out, 2, traceback, strlen(traceback));
        if (traceback[strlen(traceback) - 1] != '\n')
            outlet_guest(s->out, 2, "\n", 1);
    } else {
        outlet_guest(s->out, 2, c->error.name, strlen(c->error.name));
        if (c->error.value && *c->error.value) {
            outlet_guest(s->out, 2, ": ", 2);
            outlet_guest(s->out, 2, c->error.value, strlen(c->error.value));
        }
        outlet_guest(s->out, 2, "\n", 1);
    }
    outlet_guest_end(s->out);
}

static void show_limit(struct show *s, const struct cell *c)
{
    char words[80];
    const char *name = words_limit(c, s->limits, words, sizeof(words));

    outlet_note(s->out, "%s%s reached (raise it with --%s)",
                c->status == CELL_LIMIT ? "stopped: " : "", words, name);
}

static void show_truncated(struct show *s, const struct cell *c)
{
    char out[WORDS_SIZE], err[WORDS_SIZE];

    words_size(c->truncated.stdout_bytes, out);
    words_size(c->truncated.stderr_bytes, err);
    if (c->truncated.stdout_bytes && c->truncated.stderr_bytes)
        outlet_note(s->out, "%s of stdout and %s of stderr were left out (keep more with --output)",
                    out, err);
    else if (c->truncated.stdout_bytes || c->truncated.stderr_bytes)
        outlet_note(s->out, "%s of %s were left out of the middle (keep more with --output)",
                    c->truncated.stdout_bytes ? out : err,
                    c->truncated.stdout_bytes ? "stdout" : "stderr");
    if (c->truncated.displays)
        outlet_note(s->out, "%llu displays were left out: they were too many or too big",
                    (unsigned long long)c->truncated.displays);
}

void show_end(struct show *s, const struct cell *c)
{
    outlet_guest_end(s->out);
    if (s->quiet)
        return;
    show_error(s, c);
    if (c->limit.kind != LIMIT_KIND_NONE && c->limit.kind != LIMIT_KIND_OUTPUT)
        show_limit(s, c);
    show_truncated(s, c);
}

/* ---- files ---- */

/* 0, or a set of enum turn that said to stop. */
static int copy_file(struct show *s, struct guest *g, const char *path)
{
    char name[NAME_SHOWN], size_text[WORDS_SIZE];
    cleanup_fd int fd = -1;
    uint64_t size;
    struct err e;

    sanitise_name(path, name, sizeof(name));
    int turn = guest_get(g, path, s->export->fd, s->export->left, &fd, &e);
    if (turn > 0)
        return turn;
    if (turn < 0) {
        /* The guest's own doing, like a file that may not be read: no failure of ours. */
        outlet_note(s->out, "not copied: %s: %s", name, e.text);
        s->failed = s->failed || g->failed || g->owner->lost;
    } else if (export_file(s->export, path, fd, &size, &e) < 0) {
        outlet_note(s->out, "not copied: %s: %s", name, e.text);
        s->failed =
            s->failed || e.code != EFBIG; /* a size that is a lie is the guest's doing too */
    } else if (!s->quiet) {
        outlet_note(s->out, "wrote %s/%s (%s)", s->export->name, name, words_size(size, size_text));
    }
    return 0;
}

int show_files(struct show *s, struct guest *g, const struct cell *c)
{
    int turn = 0;

    for (unsigned i = 0; s->export && i < c->n_files && turn == 0 && !g->owner->lost; i++) {
        if (c->files[i].change != FILE_DELETED)
            turn = copy_file(s, g, c->files[i].path);
    }
    return turn;
}
