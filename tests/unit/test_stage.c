/* The stage: what a person sees of an agent's work, and what a pipe gets. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/stage.h"
#include "session/cell.h"
#include "wire/proto.h"

static struct outlet out;
static struct stage *stage;
static const struct agent_view *view;
static int stdout_before = -1, terminal = -1;

/* Nothing is written: what waits in the outlet is what would be. */
static char *written(int fd)
{
    struct buf b = {0};
    size_t at = out.at;

    for (size_t i = out.first_run; i < out.n_runs; i++) {
        if (out.runs[i].fd == fd)
            buf_add(&b, out.bytes.data + at, out.runs[i].len);
        at += out.runs[i].len;
    }
    buf_add(&b, "", 1);
    return buf_steal(&b);
}

static void forget(void)
{
    out.bytes.len = out.at = out.n_runs = out.first_run = 0;
}

static void open_stage(bool quiet)
{
    outlet_init(&out);
    stage = stage_new(&out, quiet);
    view = stage_view(stage);
}

/* Neither stdout nor stderr is a terminal, or stdout is one. */
static int setup_pipe(void **state)
{
    (void)state;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fflush(NULL);
    stdout_before = dup(1);
    dup2(null, 1);
    close(null);
    open_stage(false);
    out.tty[2] = false;
    return 0;
}

static int setup_terminal(void **state)
{
    (void)state;
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm-256color", 1);
    setenv("RETORT_PICTURES", "blocks", 1);
    terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return -1;
    fflush(NULL);
    stdout_before = dup(1);
    dup2(terminal, 1);
    open_stage(false);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stage_free(stage);
    forget();
    outlet_done(&out);
    fflush(NULL);
    dup2(stdout_before, 1);
    close(stdout_before);
    if (terminal >= 0)
        close(terminal);
    terminal = -1;
    return 0;
}

static void text(const char *s)
{
    for (; *s; s++)
        view->text(view->ctx, s, 1);
}

static void code(unsigned call, const char *s)
{
    for (; *s; s++)
        view->code(view->ctx, call, s, 1);
}

static void output(const char *s)
{
    view->output(view->ctx, OUTPUT_STDOUT, s, strlen(s));
}

/* What a terminal shows in the end of it, without colours and lines that were drawn over. */
static char *seen(int fd)
{
    cleanup_free char *raw = written(fd);
    struct buf b = {0};
    size_t line = 0;

    for (const char *p = raw; *p; p++) {
        if (strncmp(p, "\r\033[K", 4) == 0) {
            b.len = line;
            p += 3;
        } else if (strncmp(p, "\033[K", 3) == 0) {
            p += 2;
        } else if (*p == '\033') {
            p += strcspn(p, "m");
        } else if (*p == '\r') {
            b.len = line;
        } else {
            buf_add(&b, p, 1);
            line = *p == '\n' ? b.len : line;
        }
    }
    buf_add(&b, "", 1);
    return buf_steal(&b);
}

static void assert_seen(int fd, const char *expected)
{
    cleanup_free char *got = seen(fd);
    assert_string_equal(got, expected);
}

#define HEADER "── python ──────────────────────────────────────────────────────────────\n"

static void conversation(void)
{
    struct file_note files[] = {{.path = (char *)"a\033[2J.png", .size = 45512},
                                {.path = (char *)"old", .change = FILE_DELETED}};
    struct cell c = {.status = CELL_OK, .files = files, .n_files = 2};

    view->asking(view->ctx);
    view->tick(view->ctx);
    text("I'll **look**.\n\nFirst");
    code(0, "\nx = 1\nprint(x)\n");
    code(1, "y = 2");
    view->replied(view->ctx);
    view->running(view->ctx, "\nx = 1\nprint(x)\n");
    view->tick(view->ctx);
    output("1\nhalf");
    output(" a line");
    view->ran(view->ctx, &c);
    view->running(view->ctx, "y = 2");
    view->ran(view->ctx, &(struct cell){.status = CELL_OK});
    view->asking(view->ctx);
    text("It is *1*.");
    view->replied(view->ctx);
    stage_answer(stage, "It is *1*.");
}

static void test_terminal(void **state)
{
    (void)state;
    conversation();
    assert_seen(1, "I'll look.\n\nFirst\n\n" HEADER "  x = 1\n  print(x)\n\n│ 1\n│ half a line\n"
                   "  wrote a?[2J.png  45.5 kB\n  deleted old\n\n" HEADER "  y = 2\n\nIt is 1.\n");
    assert_seen(2, "");
}

static void test_pipe(void **state)
{
    (void)state;
    conversation();
    cleanup_free char *answer = written(1), *work = written(2);
    assert_string_equal(answer, "It is *1*.\n");
    assert_null(strchr(work, '\033'));
    assert_null(strchr(work, '\r'));
    assert_non_null(strstr(work, "I'll **look**."));
    assert_non_null(strstr(work, "│ 1\n│ half a line\n"));
    assert_null(strstr(work, "It is"));
}

/* A model without tools: its code is in its text. */
static void test_code_in_text_is_shown_once(void **state)
{
    (void)state;
    view->asking(view->ctx);
    text("So:\n\n```python\nx = 1\n```\n");
    view->replied(view->ctx);
    view->running(view->ctx, "x = 1\n");
    output("o\n");
    view->ran(view->ctx, &(struct cell){.status = CELL_OK});
    assert_seen(1, "So:\n\n  x = 1\n\n│ o\n");
}

static void test_answer_that_was_not_seen(void **state)
{
    (void)state;
    view->asking(view->ctx);
    text("One.");
    view->replied(view->ctx);
    stage_answer(stage, "Other.");
    assert_seen(1, "One.\n\nOther.\n");
}

static void test_quiet(void **state)
{
    (void)state;
    stage_free(stage);
    outlet_done(&out);
    open_stage(true);
    conversation();
    assert_seen(1, "It is 1.\n");
    assert_seen(2, "");
}

static void test_broken_off(void **state)
{
    (void)state;
    view->asking(view->ctx);
    view->again(view->ctx, "429\033[2J", 2);
    view->asking(view->ctx);
    text("Half an");
    code(0, "x =");
    view->again(view->ctx, "it broke off", 1);
    view->asking(view->ctx);
    code(0, "x = 2\n");
    view->replied(view->ctx);
    assert_seen(1, "↻ 429: asking again in 2 s\n\nHalf an\n\n" HEADER "  x =\n\n"
                   "↻ it broke off: asking again in 1 s; what stands above of this reply does "
                   "not\ncount\n\n" HEADER "  x = 2\n");
}

static void test_errors(void **state)
{
    static const char traceback[] =
        "---------------------------------------------------------------------------"
        "\nKeyError\n\nKeyError: 'first'\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "---------------------------------------------------------------------------\n"
        "KeyError                                  Traceback (most recent call last)\n"
        "Cell In[1], line 5\n      3 def f(x):\n----> 5 f(df)\n\n"
        "Cell In[1], line 4, in f(x)\n----> 4     return x[\"nope\"]\n\n"
        "File /usr/lib/python3/frame.py:3807, in DataFrame.__getitem__(self, key)\n   3805 if a:\n "
        "  3806   b\n"
        "-> 3807 c\n   3808 d\n   3809 e\n\nKeyError: 'nope\033[2J'\n";
    struct cell c = {.status = CELL_FAILED,
                     .error = {(char *)"KeyError", (char *)"'nope'", (char *)traceback}};

    (void)state;
    view->running(view->ctx, "f(df)");
    c.undone = true;
    view->ran(view->ctx, &c);
    assert_seen(
        1, HEADER
        "  f(df)\n\n│ Cell In[1], line 5\n│       3 def f(x):\n│ ----> 5 f(df)\n"
        "│ Cell In[1], line 4, in f(x)\n│ ----> 4     return x[\"nope\"]\n│ KeyError: 'nope'\n"
        "  undone: variables and files are what they were before\n");
    cleanup_free char *raw = written(1);
    assert_non_null(strstr(raw, "\033[0;1;31mKeyError: 'nope'"));
}

/* A short one is shown as it is. */
static void test_syntax_error(void **state)
{
    struct cell c = {.status = CELL_FAILED,
                     .error = {(char *)"SyntaxError", (char *)"x",
                               (char *)"  Cell In[1], line 2\n    y = (2\n        ^\nSyntaxError: "
                                       "'(' was never closed\n"}};

    (void)state;
    view->running(view->ctx, "y");
    view->ran(view->ctx, &c);
    assert_seen(1, HEADER "  y\n\n│   Cell In[1], line 2\n│     y = (2\n│         ^\n"
                          "│ SyntaxError: '(' was never closed\n");
}

static void test_hostile_output(void **state)
{
    (void)state;
    view->running(view->ctx, "x");
    forget();
    output("\033]0;t\007\033[2J\033[31mred\033[0m\ttab\n10 %\r20 %\rdone\r\nbs\b\b\b\bx\xc2\x9b"
           "2J\n\xe2\x80\xae\n");
    cleanup_free char *raw = written(1);
    assert_null(strstr(raw, "\033]"));
    assert_null(strstr(raw, "2J"));
    assert_null(strstr(raw, "[31m"));
    assert_non_null(strstr(raw, "red     tab\n"));
    assert_non_null(strstr(raw, "10 %\r\033[0;2m│ \033[0m20 %\r\033[0;2m│ \033[0mdone\n"));
    assert_non_null(strstr(raw, "bs\b\bx\n")); /* and not over what is ours */
}

static void test_long_output(void **state)
{
    char line[32];

    (void)state;
    view->running(view->ctx, "x");
    for (unsigned i = 1; i <= 5000; i++) {
        snprintf(line, sizeof(line), "line %u\n", i);
        output(line);
    }
    view->ran(view->ctx, &(struct cell){.status = CELL_OK});
    cleanup_free char *got = seen(1);
    assert_non_null(strstr(got, "│ line 300\n  … 4688 lines are not shown …\n│ line 4989\n"));
    assert_non_null(strstr(got, "│ line 5000\n"));
}

/* ---- the line that is drawn over ---- */

static void test_progress(void **state)
{
    (void)state;
    view->asking(view->ctx);
    cleanup_free char *first = written(1);
    assert_non_null(strstr(first, "thinking"));
    assert_null(strchr(first, '\n'));
    view->tick(view->ctx); /* what waits was not taken yet: nothing is added */
    cleanup_free char *second = written(1);
    assert_string_equal(first, second);
    forget();
    outlet_note(&out, "somebody else");
    cleanup_free char *erased = written(1), *note = written(2);
    assert_string_equal(erased, out.tty[2] ? "\r\033[K" : "");
    assert_string_equal(note, "retort: somebody else\n");
    forget();
    stage_answer(stage, "x");
    assert_seen(1, "x\n");
}

static void test_no_progress_on_a_pipe(void **state)
{
    (void)state;
    view->asking(view->ctx);
    view->tick(view->ctx);
    assert_int_equal(out.bytes.len, 0);
}

#define ON(where, test) cmocka_unit_test_setup_teardown(test, setup_##where, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(terminal, test_terminal),
        ON(pipe, test_pipe),
        ON(terminal, test_code_in_text_is_shown_once),
        ON(terminal, test_answer_that_was_not_seen),
        ON(terminal, test_quiet),
        ON(terminal, test_broken_off),
        ON(terminal, test_errors),
        ON(terminal, test_syntax_error),
        ON(terminal, test_hostile_output),
        ON(terminal, test_long_output),
        ON(terminal, test_progress),
        ON(pipe, test_no_progress_on_a_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
