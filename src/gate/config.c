/* config: see config.h. */
#include "gate/config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/keyvalue.h"
#include "base/suggest.h"
#include "gate/authority.h"
#include "gate/headers.h"
#include "gate/syntax.h"

#define FILE_LONGEST (64 << 10)
#define MAX "max_" /* before a limit's name */

enum kind { LISTEN, WORD, HOSTS, ORIGINS, NAMES, SECONDS, COUNT, SIZE, YES_NO, LIMIT, SUMMARY };

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    unsigned least; /* COUNT, SECONDS: below it (above 0: also at 0) it is refused */
    unsigned most;  /* COUNT */
};

#define AT(member) offsetof(struct config, member)
/* A limit's key is its name, with or without MAX. */
#define LIMIT_KEYS(prefix, member)                                                                 \
    {prefix "timeout", LIMIT, AT(member)}, {prefix "cpu", LIMIT, AT(member)},                      \
        {prefix "memory", LIMIT, AT(member)}, {prefix "disk", LIMIT, AT(member)},                  \
        {prefix "files", LIMIT, AT(member)}, {prefix "pids", LIMIT, AT(member)},                   \
        {prefix "output", LIMIT, AT(member)},                                                      \
    {                                                                                              \
        prefix "cpus", LIMIT, AT(member)                                                           \
    }

/* The order of etc/retort.conf. Counts that may be 0 mean just that: nobody waits, nothing is kept ready. */
static const struct key keys[] = {
    {"listen", LISTEN, AT(listen)},
    {"hosts", HOSTS, AT(hosts)},
    {"origins", ORIGINS, AT(origins)},
    {"max_connections", COUNT, AT(max_connections), 1, 1000000},
    {"max_buffers", SIZE, AT(max_buffers)},
    {"log_requests", YES_NO, AT(log_requests)},
    {"state", WORD, AT(state)},
    {"user", WORD, AT(user)},
    {"environments", NAMES, AT(environments)},
    {"preload", WORD, AT(preload)},
    {"wheels", WORD, AT(wheels)},
    LIMIT_KEYS("", limits),
    {"checkpoints", COUNT, AT(checkpoints), 0, CHECKPOINTS_MAX},
    {"summary", SUMMARY, AT(summary)},
    LIMIT_KEYS(MAX, max),
    {"idle_timeout", SECONDS, AT(idle_timeout_s), 1},
    {"max_sessions", COUNT, AT(max_sessions), 1, 20000},
    {"max_queue", COUNT, AT(max_queue), 0, 10000},
    {"max_runs", COUNT, AT(max_runs), 1, 1000},
    {"max_waiting", COUNT, AT(max_waiting), 0, 1000000},
    {"pool", COUNT, AT(pool), 0, 10000},
    {"blanks", COUNT, AT(blanks), 0, 10000},
    {"model", WORD, AT(model)},
    {"model_config", WORD, AT(model_config)},
    {"max_asks", COUNT, AT(max_asks), 1, 1000},
    {"ask_cells", COUNT, AT(ask_cells), 1, 10000},
    {"ask_time", SECONDS, AT(ask_time_s), 1},
    {"ask_tokens", COUNT, AT(ask_tokens), 1, 1000000000},
    {"retention", SECONDS, AT(retention_s), 0},
    {"journal_outputs", SIZE, AT(journal_outputs)},
    {"journal_session", SIZE, AT(journal_session)},
    {"drain", SECONDS, AT(drain_s), 0},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

const char *config_key(unsigned i)
{
    return i < N_KEYS ? keys[i].name : NULL;
}

static void *slot(const struct config *c, const struct key *k)
{
    return (char *)(uintptr_t)c + k->offset;
}

/* ---- all of it ---- */

void config_default(struct config *ret)
{
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    *ret = (struct config){
        .listen = xstrdup("127.0.0.1:8722"),
        .environments = {xstrdup("default")},
        .checkpoints = CHECKPOINTS_DEFAULT,
        .summary = SUMMARY_DEFAULT,
        .idle_timeout_s = 20 * 60,
        .retention_s = 7 * 24 * 60 * 60,
        .drain_s = 30,
        .max_sessions = 256,
        .max_queue = 16,
        .max_runs = 16,
        .max_waiting = 256,
        .max_asks = 8,
        .ask_cells = 50,
        .ask_time_s = 10 * 60,
        .ask_tokens = 1000000,
        .max_connections = 4096,
        .max_buffers = 1 << 30,
        .pool = 4,
        .blanks = 4,
        .journal_outputs = 4 << 20,
        .journal_session = 256 << 20,
        .log_requests = true,
    };
    limits_default(&ret->limits);
    /* On a very small machine, at least what sessions get unasked. */
    ret->max = (struct limits){
        .timeout_ms = LIMIT_NONE,
        .cpu_ms = LIMIT_NONE,
        .memory = ram > ret->limits.memory ? ram : ret->limits.memory,
        .disk = ram > ret->limits.disk ? ram : ret->limits.disk,
        .files = 1000000,
        .pids = 4096,
        .output = 64 << 20,
        .cpus_milli = LIMIT_NONE,
    };
}

static void list_done(char **list)
{
    for (unsigned i = 0; i < CONFIG_LIST; i++)
        free(list[i]);
}

void config_done(struct config *c)
{
    free(c->listen);
    free(c->state);
    free(c->user);
    free(c->preload);
    free(c->wheels);
    free(c->model);
    free(c->model_config);
    list_done(c->hosts);
    list_done(c->origins);
    list_done(c->environments);
    *c = (struct config){0};
}

int config_check(const struct config *c, struct err *e)
{
    for (unsigned i = 0; limits_name(i); i++) {
        int none, none_at_most;
        double value = limits_value(&c->limits, i, &none);
        double most = limits_value(&c->max, i, &none_at_most);
        if (!none_at_most && (none || value > most))
            return err_set(e, 0, "%s is more than " MAX "%s allows: lower it, or raise " MAX "%s",
                           limits_name(i), limits_name(i), limits_name(i));
    }
    return 0;
}

/* ---- one value ---- */

int config_parse_seconds(const char *text, double *ret, struct err *e)
{
    if (strcmp(text, "none") != 0)
        return limits_parse_seconds(text, ret, e);
    *ret = INFINITY;
    return 0;
}

static int set_seconds(const struct key *k, double *ret, const char *value, struct err *e)
{
    double seconds;

    if (config_parse_seconds(value, &seconds, e) < 0)
        return -1;
    if (seconds == 0 && k->least > 0)
        return err_set(e, 0, "0 is not a time to wait; say \"none\" to wait for ever");
    if (seconds < k->least)
        return err_set(e, 0, "%s is too short; the least is %u s", value, k->least);
    *ret = seconds;
    return 0;
}

static int set_count(const struct key *k, unsigned *ret, const char *value, struct err *e)
{
    size_t digits = strspn(value, "0123456789");
    unsigned long number =
        digits > 0 && digits <= 9 && !value[digits] ? strtoul(value, NULL, 10) : (unsigned long)-1;

    if (number < k->least || number > k->most)
        return err_set(e, 0, "\"%s\": write a whole number from %u to %u", value, k->least,
                       k->most);
    *ret = (unsigned)number;
    return 0;
}

static int set_size(uint64_t *ret, const char *value, struct err *e)
{
    if (strcmp(value, "none") != 0)
        return limits_parse_size(value, ret, e);
    *ret = LIMIT_NONE;
    return 0;
}

static int set_yes_no(bool *ret, const char *value, struct err *e)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return err_set(e, 0, "\"%s\": write yes or no", value);
    *ret = value[0] == 'y';
    return 0;
}

static int set_word(const struct key *k, char **ret, const char *value, struct err *e)
{
    struct authority a;

    if (!*value)
        return err_set(e, 0, "the value is missing");
    if (k->kind == LISTEN && (authority_parse(value, &a) < 0 || a.port < 0 ||
                              (!a.literal && !syntax_is(a.host, a.host_len, "localhost"))))
        return err_set(e, 0, "\"%s\": write an address and a port, as 127.0.0.1:8722 or [::1]:8722",
                       value);
    free(*ret);
    *ret = xstrdup(value);
    return 0;
}

static int check_item(const struct key *k, const char *word, struct err *e)
{
    struct authority a;

    if (k->kind == HOSTS && (authority_parse(word, &a) < 0 || a.port >= 0))
        return err_set(e, 0, "\"%s\": write the name of a host alone, as retort.example.org", word);
    if (k->kind == ORIGINS && !header_is_origin(word))
        return err_set(e, 0,
                       "\"%s\": write scheme, host and port of a page and nothing more, as "
                       "https://chat.example.org",
                       word);
    return 0;
}

/* Words with blanks between them. */
static int set_list(const struct key *k, char **ret, const char *value, struct err *e)
{
    cleanup_free char *copy = xstrdup(value);
    char *words[CONFIG_LIST + 1] = {0}, *save = NULL;
    unsigned n = 0;

    for (char *w = strtok_r(copy, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (n == CONFIG_LIST)
            return err_set(e, 0, "at most %d can be given", CONFIG_LIST);
        if (check_item(k, w, e) < 0)
            return -1;
        for (unsigned i = 0; i < n; i++) {
            if (strcmp(words[i], w) == 0)
                return err_set(e, 0, "\"%s\" is there twice", w);
        }
        words[n++] = w;
    }
    if (n == 0 && k->kind == NAMES)
        return err_set(e, 0, "name at least one, as \"default\"");
    list_done(ret);
    for (unsigned i = 0; i <= CONFIG_LIST; i++)
        ret[i] = words[i] ? xstrdup(words[i]) : NULL;
    return 0;
}

/* ---- one key ---- */

static const struct key *find(const char *name, struct err *e)
{
    const char *best = NULL;
    unsigned distance = 0;

    for (unsigned i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
        suggest_offer(name, keys[i].name, &best, &distance);
    }
    if (best)
        err_set(e, 0, "there is no key \"%s\" (did you mean \"%s\"?)", name, best);
    else
        err_set(e, 0, "there is no key \"%s\"", name);
    return NULL;
}

static int set(struct config *c, const struct key *k, const char *value, struct err *e)
{
    void *at = slot(c, k);

    switch (k->kind) {
    case LISTEN:
    case WORD:
        return set_word(k, at, value, e);
    case HOSTS:
    case ORIGINS:
    case NAMES:
        return set_list(k, at, value, e);
    case SECONDS:
        return set_seconds(k, at, value, e);
    case COUNT:
        return set_count(k, at, value, e);
    case SIZE:
        return set_size(at, value, e);
    case SUMMARY:
        return limits_parse_summary(value, at, e);
    case YES_NO:
        return set_yes_no(at, value, e);
    case LIMIT:
        break;
    }
    bool most = at == &c->max;
    return limits_set(at, k->name + (most ? strlen(MAX) : 0), value, e);
}

static int set_named(struct config *c, const struct key *k, const char *value, struct err *e)
{
    if (set(c, k, value, e) == 0)
        return 0;
    if (k->kind != LIMIT)
        return err_wrap(e, "%s", k->name);
    /* limits_set has said the name, without what may be before it. */
    struct err inner = *e;
    return slot(c, k) == &c->max ? err_set(e, 0, MAX "%.500s", inner.text) : -1;
}

int config_set(struct config *c, const char *key, const char *value, struct err *e)
{
    const struct key *k = find(key, e);

    return k ? set_named(c, k, value, e) : -1;
}

/* ---- a file ---- */

struct loading {
    struct config *config;
    unsigned seen[N_KEYS]; /* in which line */
};

static int take(void *ctx, unsigned line, const char *key, char *value, struct err *e)
{
    struct loading *l = ctx;
    const struct key *k = find(key, e);

    if (!k)
        return -1;
    unsigned *seen = &l->seen[k - keys];
    if (*seen)
        return err_set(e, 0, "%s is in line %u already", k->name, *seen);
    *seen = line;
    return set_named(l->config, k, value, e);
}

int config_load(struct config *c, const char *path, struct err *e)
{
    cleanup_free char *text = xcalloc(1, FILE_LONGEST + 1);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return err_set(e, errno, "cannot open %s", path);
    ssize_t n = fd_read_full(fd, text, FILE_LONGEST + 1);
    if (n < 0)
        return err_set(e, errno, "cannot read %s", path);
    if (n > FILE_LONGEST)
        return err_set(e, EFBIG, "cannot read %s", path);
    if (memchr(text, '\0', (size_t)n))
        return err_set(e, 0, "%s is not a text file", path);
    return keyvalue_each(path, text, take, &(struct loading){.config = c}, e);
}
