/* Which model is asked, where, and who gets which key. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/find.h"
#include "agent/protocol.h"
#include "agent/provider.h"
#include "answers.h"
#include "base/buf.h"
#include "base/fd.h"

#define NOBODY "http://127.0.0.1:1" /* a server that is not there */

static char home[] = "/tmp/retort-test-find-XXXXXX";
static struct buf notes;

static const char *const variables[] = {
    "RETORT_MODEL",       "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY",  "OLLAMA_HOST",
};

/* "A=x B=y", and nothing else of what matters. */
static void set_environment(const char *text)
{
    cleanup_free char *copy = xstrdup(text);
    char *rest = copy;

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    for (char *pair; (pair = strsep(&rest, " "));) {
        char *equals = strchr(pair, '=');
        if (!equals)
            continue;
        *equals = '\0';
        setenv(pair, equals + 1, 1);
    }
}

static const char *in_home(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", home, name);
    return path;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
    const char *path = in_home(name);
    cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    assert_int_equal(fchmod(fd, mode), 0);
}

static void set_file(const char *text)
{
    if (text)
        write_file("retort/model.conf", text, 0600);
    else
        unlink(in_home("retort/model.conf"));
}

static int set_up(void **state)
{
    struct err e;
    (void)state;

    if (!mkdtemp(home) || fd_make_dirs(in_home("retort"), 0700, &e) < 0)
        return -1;
    return setenv("XDG_CONFIG_HOME", home, 1);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(in_home("retort/model.conf"));
    unlink(in_home("key"));
    rmdir(in_home("retort"));
    buf_done(&notes);
    return rmdir(home);
}

static int find(const struct model_wish *w, struct model *ret, struct err *e)
{
    notes.len = 0;
    return model_find(w, ret, &notes, e);
}

/* ---- the table ---- */

struct sample {
    const char *environment, *file, *model, *url;
    const char *title, *protocol, *base, *key; /* key NULL: none */
};

static void check(const struct sample *s)
{
    struct model_wish w = {.model = s->model, .base_url = s->url};
    struct model m;
    struct err e;

    set_environment(s->environment);
    set_file(s->file);
    if (find(&w, &m, &e) < 0)
        fail_msg("%s: %s", s->title, e.text);
    cleanup_free char *title = model_title(&m);
    assert_string_equal(title, s->title);
    assert_string_equal(m.protocol->name, s->protocol);
    assert_string_equal(m.base, s->base);
    assert_true(m.tools && m.sees && m.streams);
    if (s->key)
        assert_string_equal(m.key ? m.key : "none", s->key);
    else
        assert_string_equal(m.key ? m.key : "none", "none");
    model_done(&m);
}

#define CHECK(list)                                                                                \
    for (size_t i = 0; i < sizeof(list) / sizeof((list)[0]); i++)                                  \
    check(&(list)[i])

#define ANTHROPIC "https://api.anthropic.com/v1"
#define OPENAI "https://api.openai.com/v1"
#define GEMINI "https://generativelanguage.googleapis.com/v1beta"
#define ALL_KEYS "ANTHROPIC_API_KEY=ka OPENAI_API_KEY=ko GEMINI_API_KEY=kg"

static void providers_by_name(void **state)
{
    static const struct sample list[] = {
        {ALL_KEYS, NULL, "anthropic/claude-x", NULL, "anthropic/claude-x", "messages", ANTHROPIC,
         "ka"},
        {ALL_KEYS, NULL, "openai/gpt-x", NULL, "openai/gpt-x", "responses", OPENAI, "ko"},
        {ALL_KEYS, NULL, "openai-chat/gpt-x", NULL, "openai/gpt-x", "chat", OPENAI, "ko"},
        {ALL_KEYS, NULL, "openai-responses/x", NULL, "openai/x", "responses", OPENAI, "ko"},
        {ALL_KEYS, NULL, "gemini/gemini-x", NULL, "gemini/gemini-x", "gemini", GEMINI, "kg"},
        {"GOOGLE_API_KEY=kk", NULL, "gemini/x", NULL, "gemini/x", "gemini", GEMINI, "kk"},
        {ALL_KEYS, NULL, "ollama/hf.co/x/y:Q4", NULL, "ollama/hf.co/x/y:Q4", "chat",
         "http://127.0.0.1:11434/v1", NULL},
        {ALL_KEYS, NULL, "llamacpp/x", NULL, "llamacpp/x", "chat", "http://127.0.0.1:8080/v1",
         NULL},
        {ALL_KEYS, NULL, "lmstudio/x", NULL, "lmstudio/x", "chat", "http://127.0.0.1:1234/v1",
         NULL},
        {ALL_KEYS, NULL, "vllm/x", NULL, "vllm/x", "chat", "http://127.0.0.1:8000/v1", NULL},
        /* a provider alone has its usual model, and a well-known name its provider */
        {ALL_KEYS, NULL, "anthropic", NULL, "anthropic/claude-sonnet-5-5", "messages", ANTHROPIC,
         "ka"},
        {ALL_KEYS, NULL, "gpt-x", NULL, "openai/gpt-x", "responses", OPENAI, "ko"},
        {ALL_KEYS, NULL, "gemini-x", NULL, "gemini/gemini-x", "gemini", GEMINI, "kg"},
        /* the variable, and the flag before it */
        {ALL_KEYS " RETORT_MODEL=gemini/x", NULL, NULL, NULL, "gemini/x", "gemini", GEMINI, "kg"},
        {ALL_KEYS " RETORT_MODEL=gemini/x", NULL, "openai/y", NULL, "openai/y", "responses", OPENAI,
         "ko"},
    };
    (void)state;

    CHECK(list);
}

static void the_first_key(void **state)
{
    static const struct sample list[] = {
        {ALL_KEYS, NULL, NULL, NULL, "anthropic/claude-sonnet-5-5", "messages", ANTHROPIC, "ka"},
        {"OPENAI_API_KEY=ko GEMINI_API_KEY=kg ANTHROPIC_API_KEY=", NULL, NULL, NULL,
         "openai/gpt-6-sol", "responses", OPENAI, "ko"},
        {"GEMINI_API_KEY=kg", NULL, NULL, NULL, "gemini/gemini-flash-latest", "gemini", GEMINI,
         "kg"},
    };
    (void)state;

    CHECK(list);
}

static void base_urls(void **state)
{
    static const struct sample list[] = {
        /* with the version or without, and what is one */
        {"", NULL, "x", "http://gpu:8000", "gpu:8000/x", "chat", "http://gpu:8000/v1", NULL},
        {"", NULL, "x", "http://gpu:8000/", "gpu:8000/x", "chat", "http://gpu:8000/v1", NULL},
        {"", NULL, "x", "http://gpu:8000/v1/", "gpu:8000/x", "chat", "http://gpu:8000/v1", NULL},
        {"", NULL, "x", "https://a.example/api/v1", "a.example/x", "chat",
         "https://a.example/api/v1", NULL},
        {"", NULL, "x", "https://a.example/v1beta/openai", "a.example/x", "chat",
         "https://a.example/v1beta/openai", NULL},
        {"", NULL, "x", "https://a.example/video", "a.example/x", "chat",
         "https://a.example/video/v1", NULL},
        {"", NULL, "gemini/x", "https://a.example", "gemini/x", "gemini",
         "https://a.example/v1beta", NULL},
        {"", NULL, "anthropic/x", "https://a.example/anthropic", "anthropic/x", "messages",
         "https://a.example/anthropic/v1", NULL},
        /* its host has its own API, and everybody's */
        {"GEMINI_API_KEY=kg", NULL, "x", "https://generativelanguage.googleapis.com/v1beta/openai/",
         "gemini/x", "chat", "https://generativelanguage.googleapis.com/v1beta/openai", "kg"},
        {"", NULL, "anthropic/x", "http://openai", "anthropic/x", "messages", "http://openai/v1",
         NULL},
        /* names with slashes, which are no provider's; and one that is */
        {"", NULL, "meta-llama/Llama-3", "https://a.example", "a.example/meta-llama/Llama-3",
         "chat", "https://a.example/v1", NULL},
        {"", NULL, "openai/openai/gpt-x", "https://a.example", "a.example/openai/gpt-x", "chat",
         "https://a.example/v1", NULL},
        /* a provider's own host, named by its URL */
        {ALL_KEYS, NULL, "x", "https://API.anthropic.com:443", "anthropic/x", "messages",
         "https://API.anthropic.com:443/v1", "ka"},
        {"", NULL, "x", "http://127.0.0.1:8080", "llamacpp/x", "chat", "http://127.0.0.1:8080/v1",
         NULL},
        /* the environment's */
        {"OPENAI_BASE_URL=http://gpu:1/v1 OPENAI_API_KEY=ko", NULL, "openai/x", NULL, "gpu:1/x",
         "chat", "http://gpu:1/v1", "ko"},
        {"OPENAI_BASE_URL=http://gpu:1 OPENAI_API_KEY=ko", NULL, "claude-x", NULL, "gpu:1/claude-x",
         "chat", "http://gpu:1/v1", "ko"},
        {"OPENAI_BASE_URL=http://gpu:1", NULL, "openai-responses/x", NULL, "gpu:1/x", "responses",
         "http://gpu:1/v1", NULL},
        {"ANTHROPIC_BASE_URL=https://a.example ANTHROPIC_API_KEY=ka", NULL, NULL, NULL,
         "anthropic/claude-sonnet-5-5", "messages", "https://a.example/v1", "ka"},
        {"OLLAMA_HOST=gpu", NULL, "ollama/x", NULL, "ollama/x", "chat", "http://gpu:11434/v1",
         NULL},
        {"OLLAMA_HOST=gpu:99", NULL, "ollama/x", NULL, "ollama/x", "chat", "http://gpu:99/v1",
         NULL},
        {"OLLAMA_HOST=http://gpu:99/", NULL, "ollama/x", NULL, "ollama/x", "chat",
         "http://gpu:99/v1", NULL},
        {"OLLAMA_HOST=https://gpu.example", NULL, "ollama/x", NULL, "ollama/x", "chat",
         "https://gpu.example/v1", NULL},
        {"OLLAMA_HOST=0.0.0.0", NULL, "ollama/x", NULL, "ollama/x", "chat",
         "http://127.0.0.1:11434/v1", NULL},
        {"OLLAMA_HOST=0.0.0.0:99", NULL, "ollama/x", NULL, "ollama/x", "chat",
         "http://127.0.0.1:99/v1", NULL},
        {"OLLAMA_HOST=:99", NULL, "ollama/x", NULL, "ollama/x", "chat", "http://127.0.0.1:99/v1",
         NULL},
        {"OLLAMA_HOST=[::]:99", NULL, "ollama/x", NULL, "ollama/x", "chat", "http://[::1]:99/v1",
         NULL},
    };
    (void)state;

    CHECK(list);
}

/* Its version is that of the protocol, not of whoever usually speaks another at such a server. */
static void versions_of_protocols(void **state)
{
    static const char *const list[][2] = {{"gemini", "http://gpu:8000/v1beta"},
                                          {"messages", "http://gpu:8000/v1"},
                                          {"chat", "http://gpu:8000/v1"}};
    (void)state;

    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        const struct model_wish w = {
            .model = "x", .base_url = "http://gpu:8000", .protocol = list[i][0]};
        struct model m;
        struct err e;
        assert_int_equal(find(&w, &m, &e), 0);
        assert_string_equal(m.base, list[i][1]);
        model_done(&m);
    }
}

/* The variable of one provider never goes to the host of another, nor to one that a flag names. */
static void keys_stay_with_their_hosts(void **state)
{
#define FILE_KEY "key = kf\n"
    static const struct sample list[] = {
        {ALL_KEYS, NULL, "openai/x", "https://other.example", "other.example/x", "chat",
         "https://other.example/v1", NULL},
        {ALL_KEYS, NULL, "x", "https://api.openai.com.evil.example",
         "api.openai.com.evil.example/x", "chat", "https://api.openai.com.evil.example/v1", NULL},
        {ALL_KEYS, NULL, "anthropic/x", "https://other.example", "anthropic/x", "messages",
         "https://other.example/v1", NULL},
        {ALL_KEYS, NULL, "anthropic/x", "http://api.anthropic.com", "anthropic/x", "messages",
         "http://api.anthropic.com/v1", NULL},
        {ALL_KEYS, NULL, "anthropic/x", "https://api.anthropic.com:8443", "anthropic/x", "messages",
         "https://api.anthropic.com:8443/v1", NULL},
        {ALL_KEYS, NULL, "openai-chat/x", "https://api.anthropic.com", "api.anthropic.com/x",
         "chat", "https://api.anthropic.com/v1", NULL},
        {ALL_KEYS " OPENAI_BASE_URL=https://mine.example", NULL, "openai/x",
         "https://other.example", "other.example/x", "chat", "https://other.example/v1", NULL},
        {ALL_KEYS " OPENAI_BASE_URL=https://mine.example", NULL, "openai/x",
         "https://mine.example/other/v1", "mine.example/x", "chat", "https://mine.example/other/v1",
         "ko"},
        /* the file's goes with the file's server */
        {"", "model = x\nbase_url = https://mine.example\n" FILE_KEY, NULL, NULL, "mine.example/x",
         "chat", "https://mine.example/v1", "kf"},
        {"", "model = x\nbase_url = https://mine.example\n" FILE_KEY, "y", NULL, "mine.example/y",
         "chat", "https://mine.example/v1", "kf"},
        {"", "model = x\nbase_url = https://mine.example\n" FILE_KEY, "y", "https://other.example",
         "other.example/y", "chat", "https://other.example/v1", NULL},
        {ALL_KEYS, "model = x\nbase_url = https://mine.example\n" FILE_KEY, "openai/y", NULL,
         "openai/y", "responses", OPENAI, "ko"},
        {"", "model = anthropic/x\n" FILE_KEY, NULL, NULL, "anthropic/x", "messages", ANTHROPIC,
         "kf"},
        {"", "model = anthropic/x\n" FILE_KEY, "anthropic/y", NULL, "anthropic/y", "messages",
         ANTHROPIC, "kf"},
        {"", "model = anthropic/x\n" FILE_KEY, "gpt-x", NULL, "openai/gpt-x", "responses", OPENAI,
         NULL},
        {"", "model = anthropic/x\n" FILE_KEY, "openai/y", NULL, "openai/y", "responses", OPENAI,
         NULL},
        {"ANTHROPIC_BASE_URL=https://other.example", "model = anthropic/x\n" FILE_KEY, NULL, NULL,
         "anthropic/x", "messages", "https://other.example/v1", NULL},
        {"RETORT_MODEL=ollama/y", "model = anthropic/x\n" FILE_KEY, NULL, NULL, "ollama/y", "chat",
         "http://127.0.0.1:11434/v1", NULL},
    };
    (void)state;

    CHECK(list);
}

/* ---- the file ---- */

static void all_that_a_file_says(void **state)
{
    struct model m;
    struct err e;
    (void)state;

    set_environment("");
    write_file("key", "kf\n", 0600);
    cleanup_free char *text =
        xasprintf("# mine\nmodel = vllm/big  # on the machine below\nbase_url = http://gpu:8000\n"
                  "protocol = responses\nkey_file = %s\ntools = no\nvision = no\nstream = no\n"
                  "max_tokens = 4096\nprice_in = 0.5\nprice_out = 2\n",
                  in_home("key"));
    set_file(text);
    assert_int_equal(find(&(struct model_wish){0}, &m, &e), 0);
    assert_string_equal(m.provider, "vllm");
    assert_string_equal(m.name, "big");
    assert_string_equal(m.base, "http://gpu:8000/v1");
    assert_string_equal(m.protocol->name, "responses");
    assert_string_equal(m.key, "kf");
    assert_false(m.tools || m.sees || m.streams);
    assert_int_equal(m.max_tokens, 4096);
    assert_true(m.price_in == 0.5 && m.price_out == 2);
    assert_non_null(strstr(buf_text(&notes), "no https://"));
    model_done(&m);

    /* Flags before it; and what it says of its model holds for no other one. */
    assert_int_equal(find(&(struct model_wish){.tools = SAY_YES, .protocol = "chat"}, &m, &e), 0);
    assert_true(m.tools && !m.sees);
    assert_string_equal(m.protocol->name, "chat");
    model_done(&m);
    assert_int_equal(find(&(struct model_wish){.model = "vllm/small"}, &m, &e), 0);
    assert_string_equal(m.base, "http://gpu:8000/v1");
    assert_true(m.tools && m.sees && m.streams);
    assert_true(m.price_in == 0 && m.max_tokens == 0);
    model_done(&m);
}

static void another_file(void **state)
{
    struct model m;
    struct err e;
    (void)state;

    set_environment("");
    set_file("model = ollama/usual\n");
    write_file("key", "model = ollama/other\n", 0600);
    assert_int_equal(find(&(struct model_wish){.config = in_home("key")}, &m, &e), 0);
    assert_string_equal(m.name, "other");
    model_done(&m);
    assert_int_equal(find(&(struct model_wish){.config = in_home("none")}, &m, &e), -1);
    assert_non_null(strstr(e.text, "none"));
}

static void readable_by_others(void **state)
{
    struct model m;
    struct err e;
    (void)state;

    set_environment("");
    set_file("model = anthropic/x\nkey = kf\n");
    assert_int_equal(find(&(struct model_wish){0}, &m, &e), 0);
    assert_int_equal(notes.len, 0);
    model_done(&m);
    chmod(in_home("retort/model.conf"), 0644);
    assert_int_equal(find(&(struct model_wish){0}, &m, &e), 0);
    assert_non_null(strstr(buf_text(&notes), "others can read the key in "));
    model_done(&m);
}

/* ---- what is refused ---- */

static void assert_refused(const char *environment, const char *file, const struct model_wish *w,
                           const char *why)
{
    struct model m = {0};
    struct err e;

    set_environment(environment);
    set_file(file);
    assert_int_equal(find(w, &m, &e), -1);
    if (!strstr(e.text, why))
        fail_msg("\"%s\" is not in \"%s\"", why, e.text);
    assert_null(strstr(e.text, "secret"));
    assert_null(m.base);
}

static void mistakes(void **state)
{
    static const struct model_wish nothing, claude = {.model = "anthropic/x"};
    (void)state;

    assert_refused("", NULL, &(struct model_wish){.model = "antropic/x"}, "mean \"anthropic/");
    assert_refused("", NULL, &(struct model_wish){.model = "qwen3"}, "say PROVIDER/NAME");
    assert_refused("", NULL, &(struct model_wish){.model = "ollama/a\nb"}, "is no model's name");
    assert_refused("", NULL, &(struct model_wish){.model = "ollama/x", .protocol = "soap"},
                   "there is no protocol \"soap\"");
    assert_refused("", NULL, &(struct model_wish){.model = "x", .base_url = "ftp://a.example"},
                   "http:// or https://");
    assert_refused("", NULL,
                   &(struct model_wish){.model = "x", .base_url = "http://me:secret@a.example"},
                   "neither a user");
    assert_refused("", NULL,
                   &(struct model_wish){.model = "x", .base_url = "http://a.example?k=secret"},
                   "no \"?\" in it");
    assert_refused("OPENAI_BASE_URL=nonsense://x", NULL, &(struct model_wish){.model = "openai/x"},
                   "OPENAI_BASE_URL");
    assert_refused("", NULL, &(struct model_wish){.key_file = "/dev/null"}, "whose it is");
    assert_refused("", "key = secret\n", &nothing, "whose it is");
    assert_refused("", "key = secret\n", &claude, "whose it is");
    assert_refused("", "modle = x\n", &nothing,
                   "model.conf:1: there is no setting \"modle\"; did you");
    assert_refused("", "# k\n\nsk-secret\n", &nothing, "model.conf:3: the line is not");
    assert_refused("", "tools = maybe\n", &nothing, "yes or no");
    assert_refused("", "max_tokens = -1\n", &nothing, "from 1 to");
    assert_refused("", "price_in = nan\n", &nothing, "price_in");
    assert_refused("", "key_file = key\n", &nothing, "begins with / or ~/");
}

static void keys_that_would_be_headers(void **state)
{
    static const struct model_wish claude = {.model = "anthropic/x"};
    struct model m;
    struct err e;
    (void)state;

    set_environment("");
    set_file(NULL);
    setenv("ANTHROPIC_API_KEY", "secret\r\nX-Evil: 1", 1);
    assert_int_equal(find(&claude, &m, &e), -1);
    assert_string_equal(e.text, "ANTHROPIC_API_KEY holds something that is not a key");
    write_file("key", "secret\nX-Evil: 1\n", 0600);
    assert_int_equal(find(&(struct model_wish){.model = "x/y",
                                               .base_url = "https://a.example",
                                               .key_file = in_home("key")},
                          &m, &e),
                     -1);
    assert_non_null(strstr(e.text, "holds something that is not a key"));
    assert_refused("", "model = anthropic/x\nkey = sec\tret\n", &claude, "not a key");
}

/* ---- looking ---- */

#define TAGS ANSWER_JSON "{\"models\":[{\"name\":\"nomic-embed-text\"},{\"name\":\"qwen3:8b\"}]}"

static void what_a_server_has(void **state)
{
    static const struct answer tags[] = {{TAGS}};
    static const struct answer models[] = {
        {ANSWER_JSON "{\"data\":[{\"id\":7},{\"id\":\"big\"}]}"}};
    struct answers server;
    struct model m;
    struct err e;
    (void)state;

    set_file(NULL);
    answers_start(&server, tags, 1);
    set_environment(ALL_KEYS);
    setenv("OLLAMA_HOST", server.url, 1);
    assert_int_equal(find(&(struct model_wish){.model = "ollama"}, &m, &e), 0);
    assert_string_equal(m.name, "qwen3:8b");
    assert_non_null(strstr(server.request[0], "GET /api/tags HTTP/1.1\r\n"));
    assert_null(strcasestr(server.request[0], "Authorization"));
    model_done(&m);
    answers_stop(&server);

    answers_start(&server, models, 1);
    write_file("key", "kf", 0600);
    const struct model_wish w = {.base_url = server.url, .key_file = in_home("key")};
    assert_int_equal(find(&w, &m, &e), 0);
    assert_string_equal(m.name, "big");
    assert_non_null(strstr(server.request[0], "GET /v1/models HTTP/1.1\r\n"));
    assert_non_null(strstr(server.request[0], "\r\nAuthorization: Bearer kf\r\n"));
    model_done(&m);
    answers_stop(&server);

    assert_int_equal(find(&(struct model_wish){.base_url = NOBODY}, &m, &e), -1);
    assert_non_null(strstr(e.text, "is not there, or does not say which models it has"));
}

/* Nothing is configured: an Ollama that is there is asked, and hears of no key. */
static void one_that_runs_here(void **state)
{
    static const struct answer tags[] = {{TAGS}};
    struct answers server;
    struct model m;
    struct err e;
    (void)state;

    set_file(NULL);
    answers_start(&server, tags, 1);
    set_environment("");
    setenv("OLLAMA_HOST", server.url, 1);
    assert_int_equal(find(&(struct model_wish){0}, &m, &e), 0);
    assert_string_equal(m.provider, "ollama");
    assert_string_equal(m.name, "qwen3:8b");
    assert_null(m.key);
    assert_non_null(
        strstr(buf_text(&notes), "no model is configured: ollama at http://127.0.0.1:"));
    model_done(&m);
    answers_stop(&server);
}

static unsigned lines_of(const char *text)
{
    unsigned n = 1;

    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

static void nobody_at_all(void **state)
{
    /* Something else listens, and never says a word. */
    static const struct answer silent[] = {{.after_ms = 20000}};
    struct answers server;
    struct model m;
    struct err e;
    (void)state;

    set_file(NULL);
    set_environment("OLLAMA_HOST=" NOBODY);
    assert_int_equal(find(&(struct model_wish){0}, &m, &e), -1);
    assert_int_equal(e.code, ENOENT);
    assert_int_equal(lines_of(e.text), 3);
    assert_non_null(strstr(e.text, "--model PROVIDER/NAME"));
    assert_true(strlen(e.text) < sizeof(e.text) - 1);

    answers_start(&server, silent, 1);
    setenv("OLLAMA_HOST", server.url, 1);
    assert_int_equal(find(&(struct model_wish){0}, &m, &e), -1);
    assert_int_equal(e.code, ENOENT);
    answers_stop(&server);
}

static void hints(void **state)
{
    struct model m = {.provider = (char[]){"anthropic"}};
    char hint[200];
    (void)state;

    assert_non_null(
        strstr(model_key_hint(&m, hint, sizeof(hint)), "it got no key: ANTHROPIC_API_KEY is for"));
    m.key = (char[]){"k"};
    assert_non_null(strstr(model_key_hint(&m, hint, sizeof(hint)), "or ANTHROPIC_API_KEY"));
    m.provider = (char[]){"gpu:8000"};
    assert_non_null(strstr(model_key_hint(&m, hint, sizeof(hint)), "--key-file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(providers_by_name),
        cmocka_unit_test(the_first_key),
        cmocka_unit_test(base_urls),
        cmocka_unit_test(versions_of_protocols),
        cmocka_unit_test(keys_stay_with_their_hosts),
        cmocka_unit_test(all_that_a_file_says),
        cmocka_unit_test(another_file),
        cmocka_unit_test(readable_by_others),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(keys_that_would_be_headers),
        cmocka_unit_test(what_a_server_has),
        cmocka_unit_test(one_that_runs_here),
        cmocka_unit_test(nobody_at_all),
        cmocka_unit_test(hints),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
