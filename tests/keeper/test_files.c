/* Files of a real box: init is filtered, has its own uid, and a guest has been at work in the workspace
 * before. Runs as root and as an ordinary user. */
#include <errno.h>
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

#include "base/fd.h"
#include "house.h"
#include "wire/proto.h"

static bool done;
static char told[4096]; /* what the last cell did to files: "+created ~changed -deleted" */

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    (void)ctx;
    (void)s;
    if (c->status != CELL_OK)
        fail_msg("%s\n%s", c->code, c->error.traceback ? c->error.traceback : "");
    told[0] = '\0';
    for (unsigned i = 0; i < c->n_files; i++) {
        size_t len = strlen(told);
        snprintf(told + len, sizeof(told) - len, "%s%c%s", len ? " " : "",
                 "+~-"[c->files[i].change], c -> files[i].path);
    }
    done = true;
    cell_free(c);
}

static int setup(void **state)
{
    (void)state;
    house_session(30000, on_done);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    session_close(session);
    return 0;
}

static const char *run(const char *code)
{
    struct err e = {0};

    done = false;
    assert_int_equal(session_run(session, code, strlen(code), 0, &e), 0);
    house_wait(&done);
    return told;
}

/* ---- the owner's requests ---- */

struct outcome {
    bool answered;
    int code;
    char listed[4096];
    unsigned n_listed;
};

static void on_answer(void *ctx, const struct file_answer *a)
{
    struct outcome *o = ctx;
    int fd = a->fd;

    o->answered = true;
    o->code = a->e ? a->e->code : 0;
    fd_close(&fd);
}

static void on_entry(void *ctx, const char *path, uint64_t size, uint64_t mtime_ns)
{
    struct outcome *o = ctx;
    size_t len = strlen(o->listed);

    assert_true(mtime_ns > 0);
    o->n_listed++;
    snprintf(o->listed + len, sizeof(o->listed) - len, "%s%s:%llu", len ? " " : "", path,
             (unsigned long long)size);
}

static int delete_it(const char *path)
{
    struct outcome o = {0};
    struct err e;

    assert_non_null(session_ask_delete(session, path, on_answer, &o, &e));
    house_wait(&o.answered);
    return o.code;
}

static int get_it(const char *path)
{
    struct outcome o = {0};
    struct err e;

    assert_non_null(session_ask_get(session, path, on_answer, &o, &e));
    house_wait(&o.answered);
    return o.code;
}

static struct outcome list(void)
{
    struct outcome o = {0};
    struct err e;

    assert_non_null(session_ask_list(session, on_entry, on_answer, &o, &e));
    house_wait(&o.answered);
    return o;
}

/* ---- tests ---- */

static void uploads_side_by_side(void **state)
{
    struct outcome o[20] = {{0}};
    struct file_request *r[20];
    unsigned refused = 0;
    char name[32];
    struct err e;
    int pipes[20];
    (void)state;

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "up/%02d", i);
        r[i] = session_ask_put(session, name, &pipes[i], on_answer, &o[i], &e);
        assert_non_null(r[i]);
    }
    for (int i = 16; i < 20; i++) /* init takes 16 */
        house_wait(&o[i].answered);
    for (int i = 0; i < 20; i++) {
        if (!o[i].answered) {
            assert_int_equal(write(pipes[i], "hello", 5), 5);
            session_put_all(r[i], 5);
        }
        close(pipes[i]);
    }
    for (int i = 0; i < 20; i++) {
        house_wait(&o[i].answered);
        refused += o[i].code == EBUSY;
        assert_true(o[i].code == 0 || o[i].code == EBUSY);
    }
    assert_int_equal(refused, 4);
    assert_int_equal(list().n_listed, 16);
    assert_string_equal(run("import os; assert len(os.listdir('up')) == 16"), "");
}

static void lists_and_deletes_what_a_guest_left(void **state)
{
    struct outcome o;
    (void)state;

    run("import os\n"
        "os.makedirs('tree/shut/deep')\n"
        "for p in 'tree/a', 'tree/shut/b', 'tree/shut/deep/c', 'kept', 'k/e': \n"
        "    os.makedirs(os.path.dirname(p) or '.', exist_ok=True); open(p, 'w').write('abc')\n"
        "os.symlink('/etc', 'tree/etc'); os.symlink('../kept', 'tree/link')\n"
        "os.mkfifo('tree/fifo'); os.mkfifo('pipe')\n"
        "os.chmod('tree/shut/deep', 0); os.chmod('tree/shut', 0)");
    o = list();
    assert_int_equal(o.code, 0);
    assert_string_equal(o.listed, "k/e:3 kept:3 tree/a:3");
    assert_int_equal(delete_it("tree/etc/passwd"), ENOTDIR);
    assert_int_equal(delete_it("nothing"), ENOENT);
    assert_int_equal(get_it("nothing"), ENOENT);
    assert_int_equal(get_it("pipe"), EINVAL);
    assert_int_equal(get_it("tree"), EINVAL);
    assert_int_equal(delete_it("tree"), 0);
    assert_int_equal(delete_it("pipe"), 0);
    assert_string_equal(list().listed, "k/e:3 kept:3");
    assert_string_equal(
        run("assert sorted(os.listdir('.')) == ['k', 'kept'], os.listdir('.')\n"
            "assert os.path.exists('/etc/passwd') and open('kept').read() == 'abc'"),
        "");
}

/* During a cell, and after the interpreter is gone. */
static void files_do_not_wait_for_cells(void **state)
{
    struct err e = {0};
    (void)state;

    run("open('a', 'w').write('x')");
    done = false;
    assert_int_equal(session_run(session, "import time; time.sleep(0.5)", 28, 0, &e), 0);
    assert_int_equal(get_it("a"), 0);
    assert_int_equal(delete_it("a"), 0);
    assert_false(done);
    house_wait(&done);
    assert_string_equal(told, "");
}

/* In a workspace of many files inotify tells what to look at, if init can have it. */
static void large_workspaces_are_told_truthfully(void **state)
{
    (void)state;
    run("import os, shutil\n"
        "for i in range(600):\n"
        "    os.makedirs(f'd{i // 100}', exist_ok=True); open(f'd{i // 100}/{i:03}', "
        "'w').close()\n");
    assert_string_equal(run("1"), "");
    assert_string_equal(run("1"), "");
    assert_string_equal(run("f = open('d0/000', 'w'); f.write('x'); f.flush()"), "~d0/000");
    assert_string_equal(run("f.write('y'); f.flush()"), "~d0/000");
    assert_string_equal(run("f.close(); os.remove('d0/001')"), "-d0/001");
    run("shutil.move('d1', '/tmp/d1')");
    assert_int_equal(strncmp(told, "-d1/100 -d1/101 ", 16), 0);
    run("shutil.move('/tmp/d1', 'back')");
    assert_int_equal(strncmp(told, "+back/100 +back/101 ", 20), 0);
    assert_string_equal(run("open('back/100', 'w').write('z')"), "~back/100");
    assert_string_equal(run("os.chmod('back', 0)"), "");
    assert_string_equal(run("os.chmod('back', 0o755); os.remove('back/100')"), "-back/100");
    assert_string_equal(run("for i in range(20000):\n"
                            "    os.rename('back/101', 'back/x'); os.rename('back/x', 'back/101')\n"
                            "open('d2/200', 'w').write('q')"),
                        "~back/101 ~d2/200");
    assert_string_equal(run("open('d2/200', 'a').write('q')"), "~d2/200");
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(uploads_side_by_side),
        test(lists_and_deletes_what_a_guest_left),
        test(files_do_not_wait_for_cells),
        test(large_workspaces_are_told_truthfully),
    };
    return cmocka_run_group_tests(tests, house_open, house_close);
}
