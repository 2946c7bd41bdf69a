/* cell: see cell.h. */
#include "session/cell.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "session/utf8.h"
#include "wire/proto.h"

const char *cell_status_name(enum cell_status s)
{
    static const char *const names[] = {
        [CELL_OK] = "ok",           [CELL_FAILED] = "error",
        [CELL_LIMIT] = "limit",     [CELL_INTERRUPTED] = "interrupted",
        [CELL_CRASHED] = "crashed",
    };
    assert_that((unsigned)s < sizeof(names) / sizeof(names[0]));
    return names[s];
}

const char *limit_kind_name(enum limit_kind k)
{
    static const char *const names[] = {
        [LIMIT_KIND_NONE] = "none",     [LIMIT_KIND_WALL] = "wall", [LIMIT_KIND_CPU] = "cpu",
        [LIMIT_KIND_MEMORY] = "memory", [LIMIT_KIND_PIDS] = "pids", [LIMIT_KIND_DISK] = "disk",
        [LIMIT_KIND_OUTPUT] = "output",
    };
    assert_that((unsigned)k < sizeof(names) / sizeof(names[0]));
    return names[k];
}

const char *output_kind_name(enum output_kind k)
{
    static const char *const names[] = {
        [OUTPUT_STDOUT] = "stdout",
        [OUTPUT_STDERR] = "stderr",
        [OUTPUT_DISPLAY] = "display",
        [OUTPUT_RESULT] = "result",
    };
    assert_that((unsigned)k < sizeof(names) / sizeof(names[0]));
    return names[k];
}

const char *file_change_name(int change)
{
    static const char *const names[] = {
        [FILE_CREATED] = "created",
        [FILE_CHANGED] = "changed",
        [FILE_DELETED] = "deleted",
    };
    assert_that((unsigned)change < sizeof(names) / sizeof(names[0]));
    return names[change];
}

struct cell *cell_new(uint32_t n, const char *code, size_t len)
{
    struct cell *c = xcalloc(1, sizeof(*c));

    c->n = n;
    c->code = xcalloc(1, len + 1);
    memcpy(c->code, code, len);
    c->code_len = len;
    return c;
}

void cell_output_done(struct output *o)
{
    for (unsigned i = 0; i < o->n_parts; i++) {
        free(o->parts[i].type);
        free(o->parts[i].data);
    }
    free(o->parts);
    free(o->text);
    free(o->metadata);
    *o = (struct output){0};
}

static void error_done(struct cell *c)
{
    free(c->error.name);
    free(c->error.value);
    free(c->error.traceback);
}

void cell_free(struct cell *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < c->n_outputs; i++)
        cell_output_done(&c->outputs[i]);
    for (unsigned i = 0; i < c->n_files; i++)
        free(c->files[i].path);
    error_done(c);
    free(c->outputs);
    free(c->files);
    free(c->code);
    free(c);
}

/* A repaired copy; of a long one head and tail, where errors say what matters. */
static char *bounded(struct slice s, size_t max)
{
    struct buf b = {0};

    if (s.len <= max)
        return utf8_repaired(s.data, s.len);
    char *head = utf8_repaired(s.data, max / 2);
    char *tail = utf8_repaired(s.data + s.len - max / 2, max / 2);
    buf_add_fmt(&b, "%s\n… %zu bytes left out …\n%s", head, s.len - max / 2 * 2, tail);
    free(head);
    free(tail);
    buf_text(&b);
    return buf_steal(&b);
}

void cell_set_error(struct cell *c, struct slice name, struct slice value, struct slice traceback)
{
    error_done(c);
    c->error.name = bounded(name, ERROR_NAME_MAX);
    c->error.value = bounded(value, ERROR_VALUE_MAX);
    c->error.traceback = bounded(traceback, ERROR_TRACEBACK_MAX);
}

void cell_set_fault(struct cell *c, const char *name, const char *sentence)
{
    struct slice s = {sentence, strlen(sentence)};

    cell_set_error(c, (struct slice){name, strlen(name)}, s, s);
}

void cell_add_file(struct cell *c, const struct file_note *note)
{
    /* Grows by doubling: the count itself says when. */
    if ((c->n_files & (c->n_files - 1)) == 0) {
        size_t cap = c->n_files ? c->n_files * 2u : 1;
        c->files = realloc(c->files, cap * sizeof(*c->files));
        if (!c->files)
            bug("out of memory (%zu file notes)", cap);
    }
    c->files[c->n_files++] = *note;
}

const struct mime_part *output_part(const struct output *o, const char *type)
{
    for (unsigned i = 0; i < o->n_parts; i++) {
        if (strcmp(o->parts[i].type, type) == 0)
            return &o->parts[i];
    }
    return NULL;
}

const struct mime_part *output_picture(const struct output *o)
{
    const struct mime_part *png = output_part(o, "image/png");

    for (unsigned i = 0; !png && i < o->n_parts; i++) {
        if (strncmp(o->parts[i].type, "image/", 6) == 0)
            return &o->parts[i];
    }
    return png;
}
