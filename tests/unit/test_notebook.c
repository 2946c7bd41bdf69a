/* Cells and texts as a notebook: each thing a cell can have, that nbformat takes it for valid, and that it is read
 * again as it was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "session/notebook.h"
#include "session/notebook_file.h"
#include "session/notebook_load.h"

/* Every kind of output and every end; '`' stands for '"'. */
static const char *const cells[] = {
    "{`n`:1,`code`:`x = 1`,`status`:`ok`,`outputs`:[],`files`:[]}",
    "{`n`:2,`code`:`é\\n`,`status`:`ok`,`outputs`:[{`type`:`stdout`,`text`:`a\\nb`},"
    "{`type`:`stderr`,`text`:`\\u0000€`},"
    "{`type`:`display`,`data`:{`image/png`:`iVBORw0KGgo=`,`text/plain`:`fig`},"
    "`metadata`:{`a`:[1]}},"
    "{`type`:`result`,`data`:{`text/plain`:`2`,`application/json`:`{\\`k\\`: [1.5]}`,"
    "`application/vnd.x+json`:`not JSON`},`metadata`:{}}]}",
    "{`n`:3,`code`:`1/0`,`status`:`error`,`outputs`:[],`error`:{`name`:`ZeroDivisionError`,"
    "`value`:`division by zero`,`traceback`:`one\\ntwo\\n\\nthree\\n`}}",
    "{`n`:4,`code`:`while 1: 0`,`status`:`limit`,`outputs`:[],`error`:{`name`:`KeyboardInterrupt`,"
    "`value`:``,`traceback`:`t`},`limit`:{`kind`:`wall`,`limit`:1.5,`used`:1.6},"
    "`truncated`:{`stdout_bytes`:7,`stderr_bytes`:0}}",
    "{`n`:5,`code`:``,`status`:`crashed`,`outputs`:[]}",
    "{`n`:6,`code`:``,`status`:`interrupted`,`outputs`:[]}",
    "{`n`:7,`code`:``,`status`:`limit`,`limit`:{`kind`:`memory`,`limit`:null,`used`:5}}",
    "{`n`:8}",
    "{`n`:9,`code`:5,`status`:[],`outputs`:[1,{},{`type`:`stdout`},{`type`:`other`},"
    "{`type`:`display`,`data`:{`text/plain`:1},`metadata`:7}],`error`:{},`limit`:4}",
};
#define N_CELLS (sizeof(cells) / sizeof(cells[0]))

static json_t *parse(const char *text)
{
    char *quoted = xstrdup(text);

    for (char *p = quoted; *p; p++)
        if (*p == '`')
            *p = '"';
    json_t *j = json_loads(quoted, JSON_ALLOW_NUL, NULL);
    assert_non_null(j);
    free(quoted);
    return j;
}

static void write_all(struct buf *b)
{
    notebook_begin(b);
    for (size_t i = 0; i < N_CELLS; i++) {
        json_t *cell = parse(cells[i]);
        notebook_code(b, cell, i == 2, (unsigned)i);
        json_decref(cell);
    }
    notebook_text(b, "answer", "é *or* \xff", 9, N_CELLS);
    notebook_end(b, json_pack("{s:s}", "session", "n1.abc\"d"));
}

/* The notebook, and in it the cell with this number. */
static json_t *notebook(size_t n, json_t **ret_outputs)
{
    cleanup_buf struct buf b = {0};

    write_all(&b);
    json_t *j = json_loadb(b.data, b.len, JSON_ALLOW_NUL, NULL);
    assert_non_null(j);
    json_t *cell = json_array_get(json_object_get(j, "cells"), n - 1);
    assert_int_equal(json_integer_value(json_object_get(cell, "execution_count")), n);
    *ret_outputs = json_object_get(cell, "outputs");
    return j;
}

static void assert_json(const json_t *j, const char *expected)
{
    char *text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    json_t *e = parse(expected);
    char *sorted = json_dumps(e, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    assert_string_equal(text, sorted);
    free(text);
    free(sorted);
    json_decref(e);
}

static void assert_outputs(size_t n, const char *expected)
{
    json_t *outputs, *j = notebook(n, &outputs);

    assert_json(outputs, expected);
    json_decref(j);
}

static void a_cell_is_a_code_cell(void **state)
{
    json_t *outputs, *j = notebook(1, &outputs);
    (void)state;

    assert_int_equal(json_array_size(json_object_get(j, "cells")), N_CELLS + 1);
    assert_json(json_array_get(json_object_get(j, "cells"), 0),
                "{`cell_type`:`code`,`id`:`cell-1`,`metadata`:{`retort`:{`status`:`ok`}},"
                "`execution_count`:1,`source`:`x = 1`,`outputs`:[]}");
    assert_int_equal(json_integer_value(json_object_get(j, "nbformat")), 4);
    assert_int_equal(json_integer_value(json_object_get(j, "nbformat_minor")), 5);
    assert_json(json_object_get(j, "metadata"),
                "{`kernelspec`:{`display_name`:`Python 3`,`language`:`python`,`name`:`python3`},"
                "`language_info`:{`name`:`python`,`file_extension`:`.py`,"
                "`mimetype`:`text/x-python`},`retort`:{`session`:`n1.abc\\`d`,`version`:1}}");
    json_decref(j);
}

static void an_empty_journal_is_a_notebook(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    notebook_begin(&b);
    notebook_end(&b, json_object());
    json_t *j = json_loadb(b.data, b.len, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(j, "cells")), 0);
    assert_true(json_is_object(j));
    json_decref(j);
}

static void outputs_keep_their_order_and_kind(void **state)
{
    (void)state;
    assert_outputs(2, "[{`output_type`:`stream`,`name`:`stdout`,`text`:`a\\nb`},"
                      "{`output_type`:`stream`,`name`:`stderr`,`text`:`\\u0000€`},"
                      "{`output_type`:`display_data`,`data`:{`image/png`:`iVBORw0KGgo=`,"
                      "`text/plain`:`fig`},`metadata`:{`a`:[1]}},"
                      "{`output_type`:`execute_result`,`execution_count`:2,`metadata`:{},"
                      "`data`:{`text/plain`:`2`,`application/json`:{`k`:[1.5]},"
                      "`application/vnd.x+json`:`not JSON`}}]");
}

static void errors_have_their_traceback_in_lines(void **state)
{
    (void)state;
    assert_outputs(3, "[{`output_type`:`error`,`ename`:`ZeroDivisionError`,"
                      "`evalue`:`division by zero`,`traceback`:[`one`,`two`,``,`three`]}]");
}

static void a_reader_sees_why_there_is_no_more(void **state)
{
    (void)state;
    assert_outputs(4,
                   "[{`output_type`:`stream`,`name`:`stderr`,`text`:`[retort: left out in the "
                   "middle: 7 bytes of stdout, 0 of stderr]\\n`},"
                   "{`output_type`:`stream`,`name`:`stderr`,`text`:`[retort: this cell was ended "
                   "by the limit \\`wall\\`, which is 1.5]\\n`},"
                   "{`output_type`:`error`,`ename`:`KeyboardInterrupt`,`evalue`:``,"
                   "`traceback`:[`t`]}]");
    assert_outputs(5, "[{`output_type`:`error`,`ename`:`Crashed`,`evalue`:`the interpreter died in "
                      "this cell`,`traceback`:[`Crashed: the interpreter died in this cell`]}]");
    assert_outputs(6, "[{`output_type`:`error`,`ename`:`Interrupted`,`evalue`:`this cell was "
                      "stopped before it came to its end`,`traceback`:[`Interrupted: this cell was "
                      "stopped before it came to its end`]}]");
    assert_outputs(7, "[{`output_type`:`stream`,`name`:`stderr`,`text`:`[retort: this cell was "
                      "ended by the limit \\`memory\\`]\\n`},"
                      "{`output_type`:`error`,`ename`:`Limit`,`evalue`:`this cell met a limit and "
                      "was ended`,`traceback`:[`Limit: this cell met a limit and was ended`]}]");
}

/* What would be valid JSON, and more than Python's own parser can take. */
static void deep_values_are_left_as_text(void **state)
{
    cleanup_buf struct buf deep = {0}, b = {0};
    (void)state;

    for (int i = 0; i < 1500; i++)
        buf_add_text(&deep, "[");
    for (int i = 0; i < 1500; i++)
        buf_add_text(&deep, "]");
    json_t *array = json_loads(buf_text(&deep), 0, NULL);
    json_t *cell =
        json_pack("{s:i,s:[{s:s,s:{s:s},s:{s:o}}]}", "n", 1, "outputs", "type", "display", "data",
                  "application/json", deep.data, "metadata", "a", array);
    assert_non_null(cell);
    notebook_begin(&b);
    notebook_code(&b, cell, false, 0);
    notebook_end(&b, json_object());
    json_decref(cell);
    assert_null(strstr(buf_text(&b), "{\"a\":["));
    assert_non_null(strstr(b.data, "\"application/json\":\"[[["));
}

static void nbformat_finds_it_valid(void **state)
{
    char path[] = "/tmp/retort-test-notebook-XXXXXX";
    cleanup_buf struct buf b = {0};
    char command[512];
    (void)state;

    write_all(&b);
    cleanup_fd int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, b.data, b.len), 0);
    snprintf(command, sizeof(command),
             "/usr/bin/python3 -c 'import nbformat, sys; b = nbformat.read(sys.argv[1], 4); "
             "nbformat.validate(b); assert len(b.cells) == %zu' %s",
             N_CELLS + 1, path);
    int status = system(command);
    unlink(path);
    assert_int_equal(WEXITSTATUS(status), 0);
}

static const char files[] = "[{`path`:`a b.png`,`change`:`created`,`size`:3,`sha256`:`00ff`}]";

static void a_cell_keeps_its_files_and_whether_it_was_undone(void **state)
{
    cleanup_buf struct buf text = {0};
    (void)state;

    buf_add_fmt(&text, "{`n`:4,`code`:`x`,`status`:`error`,`files`:%s}", files);
    json_t *cell = parse(buf_text(&text)), *j = notebook_code_json(cell, true);
    buf_done(&text);
    buf_add_fmt(&text,
                "{`retort`:{`status`:`error`,`files`:%s,`undone`:true},"
                "`tags`:[`raises-exception`]}",
                files);
    assert_json(json_object_get(j, "metadata"), buf_text(&text));
    json_decref(cell);
    json_decref(j);
}

static void a_text_has_its_role(void **state)
{
    json_t *outputs, *j = notebook(1, &outputs);
    (void)state;

    assert_json(json_array_get(json_object_get(j, "cells"), N_CELLS),
                "{`cell_type`:`markdown`,`id`:`cell-10`,`metadata`:{`retort`:{`role`:`answer`}},"
                "`source`:`é *or* \uFFFD`}");
    json_decref(j);
}

/* ---- as a file, and back ---- */

struct place {
    char dir[64], path[128];
};

static void make_place(struct place *p)
{
    snprintf(p->dir, sizeof(p->dir), "/tmp/retort-test-notebook-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof(p->path), "%s/a.ipynb", p->dir);
}

/* Nothing but the file may be left. */
static void leave_place(struct place *p)
{
    assert_int_equal(unlink(p->path), 0);
    assert_int_equal(rmdir(p->dir), 0);
}

static void what_is_written_is_read_again(void **state)
{
    struct notebook *nb = notebook_new();
    cleanup_buf struct buf large = {0};
    struct recorded r;
    struct place p;
    struct err e;
    (void)state;

    for (int i = 0; i < 40000; i++)
        buf_add_text(&large, "0123456789\n");
    json_t *cell = json_pack("{s:i,s:s,s:s,s:[{s:s,s:s}]}", "n", 7, "code", "print(x)", "status",
                             "ok", "outputs", "type", "stdout", "text", buf_text(&large));
    assert_int_equal(notebook_add_markdown(nb, NOTEBOOK_QUESTION, "how *many*?", &e), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(notebook_add_cell(nb, cell, i == 1, &e), 0);
    assert_int_equal(notebook_add_markdown(nb, NOTEBOOK_ANSWER, "42", &e), 0);
    notebook_set(nb, "files",
                 parse("[{`name`:`a`,`size`:1,`sha256`:"
                       "`0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef`}]"));
    make_place(&p);
    for (int i = 0; i < 2; i++)
        assert_int_equal(notebook_write(nb, p.path, &e), 0);
    notebook_free(nb);

    assert_int_equal(notebook_load(p.path, &r, &e), 0);
    leave_place(&p);
    assert_int_equal(json_array_size(r.cells), 3);
    const json_t *middle = json_array_get(r.cells, 1);
    const json_t *metadata = json_object_get(middle, "metadata");
    assert_true(json_is_true(json_object_get(json_object_get(metadata, "retort"), "undone")));
    assert_string_equal(json_string_value(json_object_get(middle, "source")), "print(x)");
    const json_t *output = json_array_get(json_object_get(middle, "outputs"), 0);
    assert_string_equal(json_string_value(json_object_get(output, "text")), large.data);
    assert_json(r.questions, "[`how *many*?`]");
    assert_json(r.answers, "[`42`]");
    assert_int_equal(json_array_size(r.files), 1);
    json_decref(cell);
    recorded_done(&r);
}

/* Large things do not wait in memory; where there is no room for them either, nothing is lost. */
static void what_cannot_be_spooled_is_said_and_kept(void **state)
{
    struct notebook *nb = notebook_new();
    cleanup_buf struct buf large = {0};
    struct recorded r;
    struct place p;
    struct err e;
    (void)state;

    while (large.len < 1u << 20)
        buf_add_text(&large, "0123456789\n");
    assert_int_equal(setenv("TMPDIR", "/nonexistent", 1), 0);
    assert_int_equal(notebook_add_markdown(nb, NOTEBOOK_ANSWER, buf_text(&large), &e), -1);
    assert_non_null(strstr(e.text, "temporary file"));
    assert_int_equal(unsetenv("TMPDIR"), 0);
    make_place(&p);
    assert_int_equal(notebook_write(nb, p.path, &e), 0);
    notebook_free(nb);
    assert_int_equal(notebook_load(p.path, &r, &e), 0);
    leave_place(&p);
    assert_int_equal(json_string_length(json_array_get(r.answers, 0)), large.len);
    recorded_done(&r);
}

static void a_file_that_cannot_be_written_is_not_there(void **state)
{
    struct notebook *nb = notebook_new();
    struct err e;
    (void)state;

    assert_int_equal(notebook_write(nb, "/nonexistent/a.ipynb", &e), -1);
    assert_non_null(strstr(e.text, "/nonexistent/a.ipynb"));
    notebook_free(nb);
}

static void parse_book(const char *text, struct recorded *r)
{
    json_t *book = parse(text);
    char *dumped = json_dumps(book, 0);
    struct err e;

    assert_int_equal(notebook_parse("it", dumped, strlen(dumped), r, &e), 0);
    free(dumped);
    json_decref(book);
}

static void others_have_their_texts_in_lines(void **state)
{
    struct recorded r;
    (void)state;

    parse_book("{`nbformat`:4,`cells`:["
               "{`cell_type`:`markdown`,`source`:[`# a\\n`,`b`]},{`cell_type`:`raw`,`source`:5},"
               "{`cell_type`:`code`,`source`:[`x\\n`,`y`],`outputs`:7,`metadata`:[]},"
               "{`cell_type`:`markdown`,`source`:`the end`}]}",
               &r);
    assert_json(r.cells, "[{`source`:`x\\ny`,`outputs`:[],`metadata`:{},`execution_count`:null}]");
    assert_json(r.questions, "[`# a\\nb`]");
    assert_json(r.answers, "[`the end`]");
    recorded_done(&r);
}

static void files_that_cannot_be_ours_are_not_asked_for(void **state)
{
    struct recorded r;
    (void)state;

    parse_book("{`nbformat`:4,`cells`:[],`metadata`:{`retort`:{`files`:[1,{},{`name`:`../x`,"
               "`sha256`:`0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef`},"
               "{`name`:`x`,`sha256`:`00`}]}}}",
               &r);
    assert_int_equal(json_array_size(r.files), 0);
    recorded_done(&r);
}

static void what_is_no_notebook_is_said(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "not JSON"},
        {"[]", "no `nbformat`"},
        {"{`nbformat`:`4`,`cells`:[]}", "no `nbformat`"},
        {"{`nbformat`:3,`worksheets`:[]}", "format 3"},
        {"{`nbformat`:4}", "no `cells`"},
        {"{`nbformat`:4,`cells`:{}}", "no `cells`"},
        {"{`nbformat`:4,`cells`:[],`metadata`:{`kernelspec`:{`language`:`R`}}}", "`R`"},
        {"{`nbformat`:4,`cells`:[5]}", "cell 1"},
        {"{`nbformat`:4,`cells`:[{`cell_type`:`code`,`source`:[1]}]}", "cell 1"},
        {"{`nbformat`:4,`cells`:[{`cell_type`:`code`}]}", "cell 1"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        cleanup_free char *text = xstrdup(wrong[i].text), *says = xstrdup(wrong[i].says);
        struct recorded r;
        struct err e;
        for (char *c = text; *c; c++)
            *c = *c == '`' ? '"' : *c;
        for (char *c = says; *c; c++)
            *c = *c == '`' ? '"' : *c;
        assert_int_equal(notebook_parse("it", text, strlen(text), &r, &e), -1);
        if (!strstr(e.text, says))
            fail_msg("%s: %s", text, e.text);
    }
}

/* Two bytes of text are a hundred in memory: it is refused before. */
static void too_many_values_are_refused(void **state)
{
    cleanup_buf struct buf b = {0};
    struct recorded r;
    struct err e;
    (void)state;

    buf_add_text(&b, "{\"nbformat\":4,\"cells\":[");
    for (unsigned i = 0; i < NOTEBOOK_VALUES_MAX; i++)
        buf_add_text(&b, "0,");
    buf_add_text(&b, "0]}");
    assert_int_equal(notebook_parse("it", b.data, b.len, &r, &e), -1);
    assert_non_null(strstr(e.text, "more values"));
    b.len = 0;
    for (unsigned i = 0; i < 100000; i++)
        buf_add_text(&b, "[");
    assert_int_equal(notebook_parse("it", b.data, b.len, &r, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_is_a_code_cell),
        cmocka_unit_test(an_empty_journal_is_a_notebook),
        cmocka_unit_test(outputs_keep_their_order_and_kind),
        cmocka_unit_test(errors_have_their_traceback_in_lines),
        cmocka_unit_test(a_reader_sees_why_there_is_no_more),
        cmocka_unit_test(deep_values_are_left_as_text),
        cmocka_unit_test(nbformat_finds_it_valid),
        cmocka_unit_test(a_cell_keeps_its_files_and_whether_it_was_undone),
        cmocka_unit_test(a_text_has_its_role),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(what_cannot_be_spooled_is_said_and_kept),
        cmocka_unit_test(a_file_that_cannot_be_written_is_not_there),
        cmocka_unit_test(others_have_their_texts_in_lines),
        cmocka_unit_test(files_that_cannot_be_ours_are_not_asked_for),
        cmocka_unit_test(what_is_no_notebook_is_said),
        cmocka_unit_test(too_many_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
