/* The server's settings: the file that is shipped, and what people write. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "gate/config.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int load(struct config *c, const char *text, size_t len, struct err *e)
{
    cleanup_fd int fd = memfd_create("conf", 0);
    char path[64];

    assert_int_equal(fd_write_all(fd, text, len), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return config_load(c, path, e);
}

static void same_text(const char *a, const char *b)
{
    assert_true(!a == !b);
    if (a)
        assert_string_equal(a, b);
}

static void same(const struct config *a, const struct config *b)
{
    same_text(a->listen, b->listen);
    same_text(a->state, b->state);
    same_text(a->user, b->user);
    same_text(a->wheels, b->wheels);
    same_text(a->model, b->model);
    same_text(a->model_config, b->model_config);
    for (unsigned i = 0; i <= CONFIG_LIST; i++) {
        same_text(a->hosts[i], b->hosts[i]);
        same_text(a->origins[i], b->origins[i]);
        same_text(a->environments[i], b->environments[i]);
    }
    size_t numbers = offsetof(struct config, limits);
    assert_memory_equal((const char *)a + numbers, (const char *)b + numbers,
                        offsetof(struct config, log_requests) - numbers);
    assert_int_equal(a->log_requests, b->log_requests);
}

static void defaults(void **state)
{
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct limits standard;
    struct config c;
    struct err e;
    (void)state;

    limits_default(&standard);
    config_default(&c);
    assert_string_equal(c.listen, "127.0.0.1:8722");
    assert_null(c.state);
    assert_null(c.user);
    assert_null(c.wheels);
    assert_null(c.hosts[0]);
    assert_null(c.origins[0]);
    assert_string_equal(c.environments[0], "default");
    assert_null(c.environments[1]);
    assert_memory_equal(&c.limits, &standard, sizeof(standard));
    assert_true(c.max.timeout_ms == LIMIT_NONE && c.max.cpu_ms == LIMIT_NONE);
    assert_true(c.max.cpus_milli == LIMIT_NONE);
    assert_true(c.max.memory == (ram > standard.memory ? ram : standard.memory));
    assert_true(c.max.disk == (ram > standard.disk ? ram : standard.disk));
    assert_int_equal(c.max.files, 1000000);
    assert_int_equal(c.max.pids, 4096);
    assert_int_equal(c.max.output, 64 << 20);
    assert_int_equal(c.checkpoints, 8);
    assert_true(c.idle_timeout_s == 1200 && c.retention_s == 604800 && c.drain_s == 30);
    assert_int_equal(c.max_sessions, 256);
    assert_int_equal(c.max_queue, 16);
    assert_int_equal(c.max_runs, 16);
    assert_int_equal(c.max_waiting, 256);
    assert_int_equal(c.max_connections, 4096);
    assert_int_equal(c.max_buffers, 1 << 30);
    assert_int_equal(c.pool, 4);
    assert_int_equal(c.blanks, 4);
    assert_int_equal(c.journal_outputs, 4 << 20);
    assert_int_equal(c.journal_session, 256 << 20);
    assert_true(c.log_requests);
    assert_int_equal(config_check(&c, &e), 0);
    config_done(&c);
    assert_null(c.listen);
}

/* ---- the file that is shipped ---- */

static void read_shipped(char *text, size_t size)
{
    struct err e;

    assert_int_equal(fd_get_text(AT_FDCWD, CONF, text, size, &e), 0);
}

static void shipped_file_changes_nothing(void **state)
{
    struct config standard, c;
    struct err e;
    (void)state;

    config_default(&standard);
    config_default(&c);
    if (config_load(&c, CONF, &e) < 0)
        fail_msg("%s", e.text);
    same(&c, &standard);
    config_done(&c);
    config_done(&standard);
}

/* Keys whose line is an example, because their default is nothing, or depends on the machine. */
static bool is_example(const char *key)
{
    static const char *const examples[] = {"hosts",   "origins",     "state",      "user",
                                           "preload", "wheels",      "max_memory", "max_disk",
                                           "model",   "model_config"};

    for (unsigned i = 0; i < COUNT(examples); i++) {
        if (strcmp(key, examples[i]) == 0)
            return true;
    }
    return false;
}

/* "#key = value" is a setting, "# text" is not; each key is there, in its order, and says its default. */
static void shipped_file_shows_each_key_with_its_default(void **state)
{
    char text[32768], *save = NULL;
    struct config standard, c;
    struct err e;
    unsigned n = 0;
    (void)state;

    read_shipped(text, sizeof(text));
    config_default(&standard);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        assert_true(strlen(line) <= 100);
        assert_int_equal(line[0], '#');
        if (line[1] == ' ' || line[1] == '\0')
            continue;
        const char *key = config_key(n++);
        assert_non_null(key);
        assert_int_equal(strncmp(line + 1, key, strlen(key)), 0);
        assert_int_equal(strncmp(line + 1 + strlen(key), " = ", 3), 0);
        config_default(&c);
        if (load(&c, line + 1, strlen(line + 1), &e) < 0)
            fail_msg("%s", e.text);
        if (!is_example(key))
            same(&c, &standard);
        config_done(&c);
    }
    assert_null(config_key(n));
    config_done(&standard);
}

/* ---- what people write ---- */

static void a_file(void **state)
{
    static const char text[] = "# a comment\n"
                               "\n"
                               "listen=[::1]:0\n"
                               "  state \t=  /srv/my state#1  # where\r\n"
                               "hosts = a.example\tb.example # c.example\n"
                               "origins = https://a.example http://b.example:81\n"
                               "environments = science default\n"
                               "wheels = /srv/wheels\n"
                               "memory = 2g\n"
                               "max_memory = none\n"
                               "max_timeout = 1.5h\n"
                               "idle_timeout = none\n"
                               "checkpoints = 0\n"
                               "retention = 0\n"
                               "drain = 2m\n"
                               "pool = 0\n"
                               "max_queue = 0\n"
                               "journal_outputs = none\n"
                               "log_requests = no\n"
                               "user = nobody#";
    struct config c;
    struct err e;
    (void)state;

    config_default(&c);
    if (load(&c, text, sizeof(text) - 1, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(c.listen, "[::1]:0");
    assert_string_equal(c.state, "/srv/my state#1");
    assert_string_equal(c.user, "nobody#");
    assert_string_equal(c.hosts[0], "a.example");
    assert_string_equal(c.hosts[1], "b.example");
    assert_null(c.hosts[2]);
    assert_string_equal(c.origins[1], "http://b.example:81");
    assert_string_equal(c.environments[0], "science");
    assert_string_equal(c.environments[1], "default");
    assert_null(c.environments[2]);
    assert_string_equal(c.wheels, "/srv/wheels");
    assert_true(c.limits.memory == UINT64_C(2) << 30);
    assert_true(c.max.memory == LIMIT_NONE);
    assert_int_equal(c.max.timeout_ms, 5400000);
    assert_int_equal(c.limits.timeout_ms, 60000);
    assert_int_equal(c.checkpoints, 0);
    assert_true(isinf(c.idle_timeout_s) && c.retention_s == 0 && c.drain_s == 120);
    assert_int_equal(c.pool, 0);
    assert_int_equal(c.max_queue, 0);
    assert_true(c.journal_outputs == LIMIT_NONE);
    assert_false(c.log_requests);
    /* The command line comes after it. */
    assert_int_equal(config_set(&c, "hosts", "", &e), 0);
    assert_null(c.hosts[0]);
    assert_int_equal(config_set(&c, "listen", "0.0.0.0:80", &e), 0);
    assert_string_equal(c.listen, "0.0.0.0:80");
    config_done(&c);
}

static void files_that_are_refused(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"pool = 1\nmemroy = 1g\n", ":2: there is no key \"memroy\" (did you mean \"memory\"?)"},
        {"\n\nmax_memroy = 1g",
         ":3: there is no key \"max_memroy\" (did you mean \"max_memory\"?)"},
        {"zebra = 1", ":1: there is no key \"zebra\""},
        {"= 1", "there is no key \"\""},
        {"Pool = 1", "did you mean \"pool\""},
        {"pool", ":1: \"pool\" is not \"key = value\""},
        {"pool # = 1", "is not \"key = value\""},
        {"pool = 1\n#\npool = 2", ":3: pool is in line 1 already"},
        {"pool = 1 2", ":1: pool: \"1 2\""},
    };
    struct config c;
    struct err e;
    (void)state;

    config_default(&c);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(load(&c, cases[i].text, strlen(cases[i].text), &e), -1);
        if (!strstr(e.text, cases[i].part))
            fail_msg("%s, not %s", e.text, cases[i].part);
    }
    assert_int_equal(load(&c, "pool = 1\n\0pool = 2", 18, &e), -1);
    assert_non_null(strstr(e.text, "not a text file"));
    cleanup_free char *large = xcalloc(1, (64 << 10) + 1);
    memset(large, '\n', (64 << 10) + 1);
    assert_int_equal(load(&c, large, 64 << 10, &e), 0);
    assert_int_equal(load(&c, large, (64 << 10) + 1, &e), -1);
    assert_int_equal(config_load(&c, "/nonexistent/retort.conf", &e), -1);
    assert_non_null(strstr(e.text, "/nonexistent/retort.conf: No such file"));
    assert_int_equal(config_load(&c, "/", &e), -1);
    config_done(&c);
}

static void values_that_are_refused(void **state)
{
    static const struct {
        const char *key, *value, *message;
    } cases[] = {
        {"memory", "0", "memory: 0 is not a limit; say \"none\""},
        {"max_memory", "0", "max_memory: 0 is not a limit; say \"none\""},
        {"max_memory", "lots", "max_memory: \"lots\" is not a size"},
        {"max_timeout", "0", "max_timeout: 0 is not a limit"},
        {"max_cpus", "x", "max_cpus: \"x\" is not a number"},
        {"idle_timeout", "0", "idle_timeout: 0 is not"},
        {"checkpoints", "33", "checkpoints: \"33\": write a whole number from 0 to 32"},
        {"checkpoints", "none", "checkpoints: \"none\": write a whole number"},
        {"idle_timeout", "0.5", "idle_timeout: 0.5 is too short"},
        {"idle_timeout", "soon", "idle_timeout: \"soon\" is not a time"},
        {"max_sessions", "0", "max_sessions: \"0\": write a whole number from 1 to"},
        {"max_sessions", "none", "max_sessions: \"none\": write a whole"},
        {"max_runs", "0", "max_runs: "},
        {"max_connections", "0", "max_connections: "},
        {"max_queue", "-1", "max_queue: "},
        {"max_queue", "+1", "max_queue: "},
        {"max_queue", "1.5", "max_queue: "},
        {"max_queue", "", "max_queue: "},
        {"max_queue", " 1", "max_queue: "},
        {"max_queue", "99999999999999999999", "max_queue: "},
        {"pool", "10001", "pool: "},
        {"log_requests", "maybe", "log_requests: \"maybe\": write yes or no"},
        {"journal_outputs", "x", "journal_outputs: \"x\" is not a size"},
        {"listen", "", "listen: "},
        {"listen", "127.0.0.1", "listen: "},
        {"listen", "8722", "listen: "},
        {"listen", ":8722", "listen: "},
        {"listen", "::1:8722", "listen: "},
        {"listen", "example.org:80", "listen: "},
        {"listen", "http://127.0.0.1:8722", "listen: "},
        {"listen", "127.0.0.1:65536", "listen: "},
        {"state", "", "state: the value is missing"},
        {"user", "", "user: the value is missing"},
        {"hosts", "https://a.example", "hosts: "},
        {"hosts", "a.example:80", "hosts: "},
        {"hosts", "a.example, b.example", "hosts: "},
        {"hosts", "*.example", "hosts: "},
        {"hosts", "a a", "hosts: \"a\" is there twice"},
        {"hosts", "a b c d e f g h i j k l m n o p q", "hosts: at most 16"},
        {"origins", "a.example", "origins: "},
        {"origins", "https://a.example/", "origins: "},
        {"origins", "*", "origins: "},
        {"origins", "null", "origins: "},
        {"environments", " ", "environments: name at least one"},
        {"nothing", "1", "there is no key"},
        {"max_", "1", "there is no key"},
    };
    struct config c, before;
    struct err e;
    (void)state;

    config_default(&before);
    config_default(&c);
    assert_int_equal(config_set(&before, "hosts", "a b c d e f g h i j k l m n o p", &e), 0);
    assert_int_equal(config_set(&c, "hosts", "a b c d e f g h i j k l m n o p", &e), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(config_set(&c, cases[i].key, cases[i].value, &e), -1);
        if (strncmp(e.text, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s, not %s", e.text, cases[i].message);
    }
    same(&c, &before);
    config_done(&c);
    config_done(&before);
}

static void seconds(void **state)
{
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"20", 20},     {"1.5", 1.5}, {"90s", 90},    {"20m", 1200},  {"2h", 7200},
                {"7d", 604800}, {"0", 0},     {"0.5h", 1800}, {"1e12", 1e12}, {"none", INFINITY}};
    static const char *const bad[] = {"",    "s",    "-1",  "+1",  "1 m", " 1",   "1M",    "1ms",
                                      "inf", "1e13", "nan", "0x1", "1w",  "None", "1e12d", "20 "};
    struct err e;
    (void)state;

    for (size_t i = 0; i < COUNT(good); i++) {
        double s = -7;
        assert_int_equal(config_parse_seconds(good[i].text, &s, &e), 0);
        assert_true(s == good[i].seconds);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        double s = -7;
        assert_int_equal(config_parse_seconds(bad[i], &s, &e), -1);
        assert_true(s == -7);
        assert_non_null(strstr(e.text, "is not a time"));
    }
}

static void every_limit_has_its_two_keys(void **state)
{
    struct config c;
    struct err e;
    (void)state;

    config_default(&c);
    for (unsigned i = 0; limits_name(i); i++) {
        char most[32];
        int none;
        snprintf(most, sizeof(most), "max_%s", limits_name(i));
        assert_int_equal(config_set(&c, limits_name(i), "5000", &e),
                         strcmp(limits_name(i), "memory") == 0 ? -1 : 0);
        assert_int_equal(config_set(&c, limits_name(i), "20000000", &e),
                         strcmp(limits_name(i), "pids") && strcmp(limits_name(i), "cpus") ? 0 : -1);
        assert_int_equal(config_set(&c, most, "none", &e), 0);
        limits_value(&c.max, i, &none);
        assert_true(none);
        limits_value(&c.limits, i, &none);
        assert_false(none);
    }
    config_done(&c);
}

static void what_is_given_must_be_within_what_is_allowed(void **state)
{
    struct config c;
    struct err e;
    (void)state;

    config_default(&c);
    assert_int_equal(config_set(&c, "max_pids", "64", &e), 0);
    assert_int_equal(config_check(&c, &e), 0);
    assert_int_equal(config_set(&c, "max_pids", "63", &e), 0);
    assert_int_equal(config_check(&c, &e), -1);
    assert_non_null(strstr(e.text, "pids is more than max_pids"));
    assert_int_equal(config_set(&c, "max_pids", "none", &e), 0);
    assert_int_equal(config_set(&c, "max_cpu", "100", &e), 0);
    assert_int_equal(config_check(&c, &e), -1); /* cpu = none */
    assert_int_equal(config_set(&c, "cpu", "100", &e), 0);
    assert_int_equal(config_check(&c, &e), 0);
    config_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(shipped_file_changes_nothing),
        cmocka_unit_test(shipped_file_shows_each_key_with_its_default),
        cmocka_unit_test(a_file),
        cmocka_unit_test(files_that_are_refused),
        cmocka_unit_test(values_that_are_refused),
        cmocka_unit_test(seconds),
        cmocka_unit_test(every_limit_has_its_two_keys),
        cmocka_unit_test(what_is_given_must_be_within_what_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
