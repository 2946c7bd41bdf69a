/* notebook_load: see notebook_load.h. */
#include "session/notebook_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "session/cell_from_json.h"
#include "session/notebook.h"

#define FILES_MAX 1000
#define PIECE (256u << 10)

/* ---- its text ---- */

static int read_all(const char *path, struct buf *ret, struct err *e)
{
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    cleanup_fd int opened = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    int fd = is_stdin ? STDIN_FILENO : opened;
    ssize_t n;

    if (fd < 0)
        return err_set(e, errno, "cannot open %s", name);
    while ((n = fd_read_full(fd, buf_room(ret, PIECE), PIECE)) > 0) {
        ret->len += (size_t)n;
        if (ret->len > NOTEBOOK_BYTES_MAX)
            return err_set(e, 0, "%s is longer than a notebook may be (256 MiB)", name);
    }
    return n < 0 ? err_set(e, errno, "cannot read %s", name) : 0;
}

/* ---- values ---- */

static void set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        bug("cannot read a notebook (%s)", key);
}

static void append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) < 0)
        bug("cannot read a notebook");
}

json_t *notebook_joined(const json_t *text)
{
    cleanup_buf struct buf b = {0};

    if (json_is_string(text))
        return json_incref((json_t *)text);
    if (!json_is_array(text))
        return NULL;
    for (size_t i = 0; i < json_array_size(text); i++) {
        const json_t *line = json_array_get(text, i);
        if (!json_is_string(line))
            return NULL;
        buf_add(&b, json_string_value(line), json_string_length(line));
    }
    return json_stringn_nocheck(b.data ? b.data : "", b.len);
}

static json_t *object_at(const json_t *object, const char *key)
{
    json_t *j = json_object_get(object, key);

    return json_is_object(j) ? j : NULL;
}

static const json_t *retort_of(const json_t *object)
{
    return object_at(object_at(object, "metadata"), "retort");
}

/* ---- cells ---- */

static json_t *code_cell(const json_t *cell, json_t *source)
{
    json_t *outputs = json_object_get(cell, "outputs"), *metadata = object_at(cell, "metadata");
    json_t *count = json_object_get(cell, "execution_count");
    json_t *j = json_object();

    set(j, "source", source);
    set(j, "outputs", json_is_array(outputs) ? json_incref(outputs) : json_array());
    set(j, "metadata", metadata ? json_incref(metadata) : json_object());
    set(j, "execution_count", json_is_integer(count) ? json_incref(count) : json_null());
    return j;
}

/* What is neither code nor Markdown is passed over. */
static int take_cell(const json_t *cell, struct recorded *r, json_t **last_text)
{
    const char *type = json_string_value(json_object_get(cell, "cell_type"));
    const char *role = json_string_value(json_object_get(retort_of(cell), "role"));
    bool code = type && strcmp(type, "code") == 0;

    if (!code && !(type && strcmp(type, "markdown") == 0))
        return type ? 0 : -1;
    json_t *source = notebook_joined(json_object_get(cell, "source"));
    if (!source)
        return -1;
    if (code) {
        append(r->cells, code_cell(cell, source));
    } else if (role && strcmp(role, NOTEBOOK_ANSWER) == 0) {
        append(r->answers, source);
    } else {
        append(r->questions, source);
        *last_text = role ? *last_text : source;
    }
    return 0;
}

/* Without a mark the answer is what stands last; it cannot be a question then. */
static void choose_answer(struct recorded *r, json_t *last_text)
{
    if (json_array_size(r->answers) > 0 || !last_text)
        return;
    append(r->answers, json_incref(last_text));
    for (size_t i = json_array_size(r->questions); i-- > 0;)
        if (json_array_get(r->questions, i) == last_text)
            json_array_remove(r->questions, i);
}

static bool is_sha256(const json_t *j)
{
    const char *hex = json_string_value(j);

    return hex && json_string_length(j) == 64 && strspn(hex, "0123456789abcdef") == 64;
}

/* What cannot be a file of ours is none that can be asked for. */
static void take_files(const json_t *list, struct recorded *r)
{
    for (size_t i = 0; i < json_array_size(list) && json_array_size(r->files) < FILES_MAX; i++) {
        json_t *file = json_array_get(list, i), *name = json_object_get(file, "name");
        if (json_is_string(name) &&
            !path_check(json_string_value(name), json_string_length(name)) &&
            is_sha256(json_object_get(file, "sha256")))
            append(r->files, json_incref(file));
    }
}

/* What its code is written in; NULL: it does not say, or it is Python. */
static const char *other_language(const json_t *book)
{
    const json_t *metadata = object_at(book, "metadata");
    const json_t *info = json_object_get(object_at(metadata, "language_info"), "name");
    const json_t *spec = json_object_get(object_at(metadata, "kernelspec"), "language");
    const char *language = json_string_value(json_is_string(info) ? info : spec);

    return language && strcasecmp(language, "python") != 0 ? language : NULL;
}

static int take(const char *name, const json_t *book, struct recorded *r, struct err *e)
{
    const json_t *format = json_object_get(book, "nbformat");
    const json_t *cells = json_object_get(book, "cells");
    json_t *last_text = NULL;

    if (!json_is_integer(format))
        return err_set(e, 0, "%s is not a notebook: it has no \"nbformat\"", name);
    if (json_integer_value(format) != 4)
        return err_set(e, 0,
                       "%s is a notebook of format %d, and only 4 is read: convert it, as with "
                       "\"jupyter nbconvert --to notebook\"",
                       name, (int)json_integer_value(format));
    if (!json_is_array(cells))
        return err_set(e, 0, "%s is not a notebook: it has no \"cells\"", name);
    if (other_language(book))
        return err_set(e, 0, "%s is a notebook of \"%.40s\", and only Python is run", name,
                       other_language(book));
    for (size_t i = 0; i < json_array_size(cells); i++)
        if (take_cell(json_array_get(cells, i), r, &last_text) < 0)
            return err_set(e, 0, "%s: cell %zu is not as nbformat has it", name, i + 1);
    choose_answer(r, last_text);
    take_files(json_object_get(retort_of(book), "files"), r);
    return 0;
}

int notebook_parse(const char *name, const char *text, size_t len, struct recorded *ret,
                   struct err *e)
{
    struct recorded r = {json_array(), json_array(), json_array(), json_array()};
    json_error_t why;
    int status;

    if (json_count_values(text, len) > NOTEBOOK_VALUES_MAX)
        status = err_set(e, 0, "%s has more values than a notebook may have", name);
    else {
        json_t *book = json_loadb(text, len, JSON_ALLOW_NUL, &why);
        status =
            book ? take(name, book, &r, e)
                 : err_set(e, 0, "%s is not a notebook: line %d: it is not JSON", name, why.line);
        json_decref(book);
    }
    if (status == 0)
        *ret = r;
    else
        recorded_done(&r);
    return status;
}

int notebook_load(const char *path, struct recorded *ret, struct err *e)
{
    cleanup_buf struct buf text = {0};

    if (read_all(path, &text, e) < 0)
        return -1;
    return notebook_parse(strcmp(path, "-") == 0 ? "standard input" : path, text.data, text.len,
                          ret, e);
}

void recorded_done(struct recorded *r)
{
    json_decref(r->cells);
    json_decref(r->answers);
    json_decref(r->questions);
    json_decref(r->files);
    *r = (struct recorded){0};
}
