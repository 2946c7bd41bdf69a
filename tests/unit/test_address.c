/* Where a server is, and its token. */
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
#include "base/fd.h"
#include "guest/address.h"
#include "guest/client.h"

static char url[300];

static int parse(struct address *a, const char *text, const char *file)
{
    struct err e;

    snprintf(url, sizeof(url), "%s", text);
    return address_parse(a, url, file, &e);
}

static void assert_address(const char *text, const char *base, const char *token, bool loopback)
{
    struct address a;

    assert_int_equal(parse(&a, text, NULL), 0);
    assert_string_equal(a.base, base);
    if (token)
        assert_string_equal(a.token, token);
    else
        assert_null(a.token);
    assert_int_equal(a.loopback, loopback);
    address_done(&a);
}

static void addresses(void **state)
{
    (void)state;
    assert_address("http://127.0.0.1:8722", "http://127.0.0.1:8722", NULL, true);
    assert_address("http://127.0.0.1:8722/?token=rt_a-b", "http://127.0.0.1:8722", "rt_a-b", true);
    assert_address("http://localhost:1/?token=a%2Db", "http://localhost:1", "a-b", true);
    assert_address("http://[::1]:8722/", "http://[::1]:8722", NULL, true);
    assert_address("https://box.example/retort/?token=x", "https://box.example/retort", "x", false);
    assert_address("https://localhost.example", "https://localhost.example", NULL, false);
    assert_address("http://127.box.example", "http://127.box.example", NULL, false);
    assert_address("https://box.example///", "https://box.example", NULL, false);
}

static void plain_addresses(void **state)
{
    struct address a = {0};
    struct err e;
    (void)state;

    setenv("RETORT_TOKEN", "rt_for_a_server_of_ours", 1);
    assert_int_equal(address_plain(&a, "https://models.example/v1/", &e), 0);
    unsetenv("RETORT_TOKEN");
    assert_string_equal(a.base, "https://models.example/v1");
    assert_null(a.token);
    assert_false(a.loopback);
    address_done(&a);
    assert_int_equal(address_plain(&a, "https://models.example/v1?token=x", &e), -1);
    assert_int_equal(address_plain(&a, "https://me:secret@models.example/", &e), -1);
    assert_null(a.base);
}

static void mistakes(void **state)
{
    static const char *const wrong[] = {
        "",
        "127.0.0.1:8722:1",
        "127.0.0.1:8722",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://",
        "http://user@127.0.0.1/",
        "http://127.0.0.1/#x",
        "http://127.0.0.1/?x=1",
        "http://127.0.0.1/?token=",
        "http://127.0.0.1/?token=a&b=1",
        "http://127.0.0.1/?token=a%0d%0aHost:%20x",
        "http://127.0.0.1/?token=a%00b",
    };
    struct address a = {0};
    (void)state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (parse(&a, wrong[i], NULL) == 0)
            fail_msg("%s is taken", wrong[i]);
        assert_null(a.base);
    }
}

static void the_token_is_wiped(void **state)
{
    struct address a;
    (void)state;

    assert_int_equal(parse(&a, "http://127.0.0.1/?token=secret", NULL), 0);
    assert_string_equal(url, "http://127.0.0.1/");
    for (size_t i = strlen(url); i < sizeof("http://127.0.0.1/?token=secret"); i++)
        assert_int_equal(url[i], '\0');
    address_done(&a);
    assert_int_equal(parse(&a, "ftp://127.0.0.1/?token=secret", NULL), -1);
    assert_null(strstr(url, "secret"));
}

static void the_environment_and_a_file(void **state)
{
    char file[] = "/tmp/retort-token-XXXXXX";
    int fd = mkstemp(file);
    struct address a;
    (void)state;

    assert_true(fd >= 0);
    setenv("RETORT_TOKEN", "from-env", 1);
    assert_address("http://127.0.0.1", "http://127.0.0.1", "from-env", true);
    assert_address("http://127.0.0.1/?token=own", "http://127.0.0.1", "own", true);
    assert_int_equal(fd_write_all(fd, "from-file\r\n", 11), 0);
    assert_int_equal(parse(&a, "http://127.0.0.1", file), 0);
    assert_string_equal(a.token, "from-file");
    address_done(&a);
    assert_int_equal(parse(&a, "http://127.0.0.1/?token=own", file), -1); /* which one? */
    assert_int_equal(fd_write_all(fd, "another\n", 8), 0);
    assert_int_equal(parse(&a, "http://127.0.0.1", file), -1);
    unlink(file);
    assert_int_equal(parse(&a, "http://127.0.0.1", file), -1);
    unsetenv("RETORT_TOKEN");
    close(fd);
}

static void paths_are_escaped(void **state)
{
    cleanup_buf struct buf b = {0};
    (void)state;

    call_add_path(&b, "a b/\xc3\xbc?#%\"\n.csv");
    assert_string_equal(buf_text(&b), "a%20b/%C3%BC%3F%23%25%22%0A.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(plain_addresses),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(the_token_is_wiped),
        cmocka_unit_test(the_environment_and_a_file),
        cmocka_unit_test(paths_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
