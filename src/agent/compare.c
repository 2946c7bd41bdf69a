/* compare: see compare.h. */
#include "agent/compare.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/even.h"
#include "agent/pixels.h"
#include "base/buf.h"
#include "base/err.h"
#include "session/cell_json.h"
#include "session/notebook_load.h"
#include "session/session.h"
#include "session/utf8.h"

struct findings {
    json_t *differences, *remarks;
};

static void set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        bug("cannot build JSON (%s)", key);
}

/* ---- what is found ---- */

static json_t *short_text(const char *text, size_t len)
{
    size_t n = utf8_fit(text, len, COMPARE_TEXT_MAX);
    cleanup_buf struct buf b = {0};

    buf_add(&b, text, n);
    if (n < len)
        buf_add_text(&b, "\xe2\x80\xa6");
    return cell_text_json(b.data ? b.data : "", b.len);
}

/* The two are taken over. line 0: there is none. */
static void differ(struct findings *f, const char *what, size_t line, json_t *recorded, json_t *now)
{
    json_t *j = json_object();

    set(j, "what", cell_text_json(what, strlen(what)));
    if (line > 0)
        set(j, "line", json_integer((json_int_t)line));
    set(j, "recorded", recorded);
    set(j, "now", now);
    if (json_array_size(f->differences) < COMPARE_DIFFERENCES_MAX)
        json_array_append(f->differences, j);
    json_decref(j);
}

static void differ_words(struct findings *f, const char *what, const char *recorded,
                         const char *now)
{
    differ(f, what, 0, short_text(recorded, strlen(recorded)), short_text(now, strlen(now)));
}

__attribute__((format(printf, 2, 3))) static void remark(struct findings *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    json_t *text = json_vsprintf(fmt, ap);
    va_end(ap);
    if (text && json_array_size(f->remarks) < COMPARE_DIFFERENCES_MAX)
        json_array_append(f->remarks, text);
    json_decref(text);
}

/* ---- texts ---- */

static const char *line_end(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));

    return newline ? newline : end;
}

/* From where a line is told, so that what differs in it is within what is told. */
static const char *told_from(const char *line, const char *differs)
{
    size_t before = (size_t)(differs - line);

    if (before <= COMPARE_TEXT_MAX / 2)
        return line;
    const char *from = differs - COMPARE_TEXT_MAX / 2;
    while (from < differs && ((unsigned char)*from & 0xc0) == 0x80)
        from++;
    return from;
}

static void compare_evened(struct findings *f, const char *what, const struct buf *a,
                           const struct buf *b)
{
    const char *x = a->data ? a->data : "", *y = b->data ? b->data : "";
    size_t shorter = a->len < b->len ? a->len : b->len, line = 1, start = 0, i = 0;

    for (; i < shorter && x[i] == y[i]; i++)
        if (x[i] == '\n') {
            line++;
            start = i + 1;
        }
    if (i == a->len && i == b->len)
        return;
    const char *from_x = told_from(x + start, x + i), *from_y = told_from(y + start, y + i);
    differ(f, what, line, short_text(from_x, (size_t)(line_end(from_x, x + a->len) - from_x)),
           short_text(from_y, (size_t)(line_end(from_y, y + b->len) - from_y)));
}

static void compare_texts(struct findings *f, const char *what, const json_t *recorded,
                          const json_t *now)
{
    cleanup_buf struct buf a = {0}, b = {0};

    even_out(json_string_value(recorded), json_string_length(recorded), &a);
    even_out(json_string_value(now), json_string_length(now), &b);
    compare_evened(f, what, &a, &b);
}

static bool is_output(const json_t *output, const char *type)
{
    const char *is = json_string_value(json_object_get(output, "output_type"));

    return is && strcmp(is, type) == 0;
}

/* All that went to one of the two. */
static json_t *stream_of(const json_t *cell, const char *name)
{
    const json_t *outputs = json_object_get(cell, "outputs");
    cleanup_buf struct buf b = {0};

    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *output = json_array_get(outputs, i);
        const char *is = json_string_value(json_object_get(output, "name"));
        if (!is_output(output, "stream") || !is || strcmp(is, name) != 0)
            continue;
        json_t *text = notebook_joined(json_object_get(output, "text"));
        if (text)
            buf_add(&b, json_string_value(text), json_string_length(text));
        json_decref(text);
    }
    return json_stringn_nocheck(b.data ? b.data : "", b.len);
}

static void compare_streams(struct findings *f, const json_t *recorded, const json_t *now)
{
    static const char *const names[] = {"stdout", "stderr"};

    for (unsigned i = 0; i < 2; i++) {
        json_t *a = stream_of(recorded, names[i]), *b = stream_of(now, names[i]);
        compare_texts(f, names[i], a, b);
        json_decref(a);
        json_decref(b);
    }
}

/* ---- pictures ---- */

static int add_piece(const char *text, size_t len, void *ctx)
{
    buf_add(ctx, text, len);
    return 0;
}

/* As lines; with as many digits as a notebook's numbers have. */
static void json_lines(const json_t *j, struct buf *ret)
{
    if (json_dump_callback(j, add_piece, ret,
                           JSON_INDENT(1) | JSON_SORT_KEYS | JSON_ENCODE_ANY |
                               JSON_REAL_PRECISION(15)) < 0)
        bug("cannot write JSON");
}

static bool same_json(const json_t *recorded, const json_t *now)
{
    cleanup_buf struct buf a = {0}, b = {0};

    json_lines(recorded, &a);
    json_lines(now, &b);
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static void compare_json(struct findings *f, const char *what, const json_t *recorded,
                         const json_t *now)
{
    cleanup_buf struct buf a = {0}, b = {0};

    json_lines(recorded, &a);
    json_lines(now, &b);
    compare_evened(f, what, &a, &b);
}

static void compare_pictures(struct findings *f, const json_t *recorded, const json_t *now,
                             const char *type)
{
    const json_t *old_chart = json_object_get(recorded, CHART_TYPE);
    const json_t *new_chart = json_object_get(now, CHART_TYPE);
    json_t *a = notebook_joined(json_object_get(recorded, type));
    json_t *b = notebook_joined(json_object_get(now, type));

    if (!a || !b) {
        differ_words(f, "picture", a ? "a picture" : "none", b ? "a picture" : "none");
    } else if (!pixels_same(a, b)) {
        if (!old_chart || !new_chart)
            differ(f, "picture", 0, pixels_words(a), pixels_words(b));
        else if (same_json(old_chart, new_chart))
            remark(f, "a chart of the same data is drawn with other pixels");
        else
            compare_json(f, "chart", old_chart, new_chart);
    }
    json_decref(a);
    json_decref(b);
}

/* ---- what was shown ---- */

static bool is_json_type(const char *type)
{
    size_t n = strlen(type);

    return strcmp(type, "application/json") == 0 || (n > 5 && strcmp(type + n - 5, "+json") == 0);
}

/* The name of the picture's form that the recorded one has, or NULL. */
static const char *picture_type(const json_t *bundle)
{
    const char *type;
    json_t *part;

    json_object_foreach((json_t *)bundle, type, part)
    {
        if (strncmp(type, "image/", 6) == 0)
            return type;
    }
    return NULL;
}

/* Does the text say what is shown, and not only what kind of thing it is? */
static bool text_says_it(const json_t *recorded, const json_t *now)
{
    json_t *text = notebook_joined(json_object_get(recorded, "text/plain"));
    bool says = text && json_string_value(text)[0] != '<' && json_object_get(now, "text/plain");

    json_decref(text);
    return says;
}

static void compare_part(struct findings *f, const char *type, const json_t *recorded,
                         const json_t *now)
{
    json_t *a = notebook_joined(recorded), *b = notebook_joined(now);

    if (is_json_type(type))
        compare_json(f, type, recorded, now);
    else if (a && b)
        compare_texts(f, type, a, b);
    json_decref(a);
    json_decref(b);
}

static bool counts(const char *type, bool text_says_it)
{
    if (strcmp(type, "text/html") == 0 || strcmp(type, "text/markdown") == 0 ||
        strcmp(type, "text/latex") == 0)
        return !text_says_it;
    return strncmp(type, "text/", 5) == 0 ||
           (is_json_type(type) && strncmp(type, "application/vnd.jupyter.", 24) != 0);
}

static void compare_bundles(struct findings *f, const json_t *recorded, const json_t *now)
{
    const char *picture = picture_type(recorded), *type;
    bool says = text_says_it(recorded, now), common = json_object_size(recorded) == 0;
    json_t *part;

    if (picture) {
        compare_pictures(f, recorded, now, picture);
        return;
    }
    json_object_foreach((json_t *)recorded, type, part)
    {
        const json_t *other = json_object_get(now, type);
        common = common || other;
        if (other && counts(type, says))
            compare_part(f, type, part, other);
    }
    if (!common)
        differ_words(f, "shown", json_object_iter_key(json_object_iter((json_t *)recorded)),
                     json_object_size(now) > 0
                         ? json_object_iter_key(json_object_iter((json_t *)now))
                         : "nothing");
}

/* The next thing that is shown, from *at on. */
static const json_t *next_shown(const json_t *cell, size_t *at)
{
    const json_t *outputs = json_object_get(cell, "outputs");

    while (*at < json_array_size(outputs)) {
        const json_t *output = json_array_get(outputs, (*at)++);
        if (is_output(output, "display_data") || is_output(output, "execute_result"))
            return output;
    }
    return NULL;
}

static size_t count_shown(const json_t *cell)
{
    size_t n = 0;

    for (size_t at = 0; next_shown(cell, &at);)
        n++;
    return n;
}

static void compare_shown(struct findings *f, const json_t *recorded, const json_t *now)
{
    size_t n = count_shown(recorded), m = count_shown(now), i = 0, k = 0;
    const json_t *a, *b;

    while ((a = next_shown(recorded, &i)) && (b = next_shown(now, &k)))
        compare_bundles(f, json_object_get(a, "data"), json_object_get(b, "data"));
    if (n != m)
        differ(f, "shown", 0, json_sprintf("%zu thing%s", n, n == 1 ? "" : "s"),
               json_sprintf("%zu thing%s", m, m == 1 ? "" : "s"));
}

/* ---- errors ---- */

static json_t *error_of(const json_t *cell)
{
    const json_t *outputs = json_object_get(cell, "outputs");

    for (size_t i = json_array_size(outputs); i-- > 0;) {
        const json_t *output = json_array_get(outputs, i);
        const json_t *name = json_object_get(output, "ename");
        const json_t *value = json_object_get(output, "evalue");
        if (!is_output(output, "error") || !json_is_string(name))
            continue;
        cleanup_buf struct buf b = {0};
        buf_add(&b, json_string_value(name), json_string_length(name));
        if (json_string_length(value) > 0) {
            buf_add_text(&b, ": ");
            buf_add(&b, json_string_value(value), json_string_length(value));
        }
        return json_stringn_nocheck(b.data ? b.data : "", b.len);
    }
    return json_string("no error");
}

static void compare_errors(struct findings *f, const json_t *recorded, const json_t *now)
{
    json_t *a = error_of(recorded), *b = error_of(now);

    compare_texts(f, "error", a, b);
    json_decref(a);
    json_decref(b);
}

/* ---- files ---- */

static const json_t *files_of(const json_t *cell)
{
    const json_t *metadata = json_object_get(cell, "metadata");

    return json_object_get(json_object_get(metadata, "retort"), "files");
}

static json_t *by_path(const json_t *files)
{
    json_t *all = json_object();

    for (size_t i = 0; i < json_array_size(files); i++) {
        json_t *file = json_array_get(files, i);
        const char *path = json_string_value(json_object_get(file, "path"));
        if (path)
            json_object_set(all, path, file);
    }
    return all;
}

/* Its format has the time of its making in it, or a random id. */
static bool never_the_same(const char *path)
{
    static const char *const kinds[] = {".xlsx", ".docx", ".pptx", ".odt",     ".ods",
                                        ".odp",  ".pdf",  ".zip",  ".gz",      ".tgz",
                                        ".svg",  ".npz",  ".pkl",  ".pickle",  ".joblib",
                                        ".db",   ".h5",   ".hdf5", ".parquet", ".epub"};
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcasecmp(dot, kinds[i]) == 0)
            return true;
    return false;
}

static const char *change_of(const json_t *file)
{
    const char *change = json_string_value(json_object_get(file, "change"));

    return !file ? "not touched" : change ? change : "?";
}

static void compare_file(struct findings *f, const char *path, const json_t *recorded,
                         const json_t *now)
{
    json_t *a = json_object_get(recorded, "sha256"), *b = json_object_get(now, "sha256");
    cleanup_free char *what = xasprintf("file %s", path);

    if (!recorded || !now || strcmp(change_of(recorded), change_of(now)) != 0)
        differ_words(f, what, change_of(recorded), change_of(now));
    else if (a && b && json_equal(a, b))
        return;
    else if (a && b && never_the_same(path))
        remark(f, "%s has other bytes, as files of its kind have each time they are made", path);
    else if (a && b)
        differ(f, what, 0, json_incref(a), json_incref(b));
}

static void compare_files(struct findings *f, const json_t *recorded, const json_t *now)
{
    const json_t *metadata = json_object_get(recorded, "metadata");
    const char *path;
    json_t *file;

    if (!json_is_object(json_object_get(metadata, "retort")))
        return; /* a notebook of another's says nothing of files */
    json_t *a = by_path(files_of(recorded)), *b = by_path(files_of(now));
    json_object_foreach(a, path, file)
    {
        compare_file(f, path, file, json_object_get(b, path));
    }
    json_object_foreach(b, path, file)
    {
        if (!json_object_get(a, path))
            compare_file(f, path, NULL, file);
    }
    json_decref(a);
    json_decref(b);
}

/* ---- all of it ---- */

json_t *compare_cells(const json_t *recorded, const json_t *now)
{
    struct findings f = {json_array(), json_array()};
    json_t *j = json_object();

    compare_errors(&f, recorded, now);
    compare_streams(&f, recorded, now);
    compare_shown(&f, recorded, now);
    compare_files(&f, recorded, now);
    set(j, "differences", f.differences);
    set(j, "remarks", f.remarks);
    return j;
}
