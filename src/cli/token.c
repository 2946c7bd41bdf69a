/* token: who may use a server. It writes to the server's database directly; a server that runs sees it at
 * the next request. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "gate/state_dir.h"
#include "gate/store.h"

const char token_help[] =
    "usage: retort token new NAME [OPTION]…\n"
    "       retort token list [--json] [--state DIR]\n"
    "       retort token revoke NAME [--state DIR]\n"
    "\n"
    "Makes, lists and revokes the tokens with which programs use a retort server. A\n"
    "server that runs takes notice at once.\n"
    "\n"
    "  new                   print a new token on stdout, once: it is not stored\n"
    "  list                  names, times and quotas; never a token\n"
    "  revoke                the token is void, and its sessions are forgotten\n"
    "\n"
    "  --state DIR           the server's directory [root: /var/lib/retort; others:\n"
    "                        ~/.local/state/retort]\n"
    "  --json                print a JSON object (new and list)\n"
    "\n"
    "For a new token (\"none\" is as much as the server gives):\n"
    "  --sessions N          sessions at the same time               [none]\n"
    "  --cells-per-minute N  cells begun in a minute                 [none]\n"
    "  --memory SIZE         memory of all its sessions together     [none]\n"
    "  --operator            may see the metrics of the whole server\n"
    "\n"
    "Exit status: 0 done, 1 no such token or name taken, 2 wrong usage, 125 failed.\n";

struct request {
    struct options options;
    const char *name;
    const char *state;
    struct quota quota;
    bool operator;
    const char *only_new; /* an option that the other actions do not have */
};

static int failed(const struct err *e, int status)
{
    fprintf(stderr, "retort: %s\n", e->text);
    return status;
}

/* The store knows its directory only as the current one. */
static int broken(struct err *e, const char *dir)
{
    err_wrap(e, "in %s", dir);
    return failed(e, EXIT_RETORT_FAILED);
}

/* ---- the three ---- */

/* A token that nobody could read must not stay valid. */
static int take_back(struct store *st, const char *name)
{
    int code = errno;
    struct err e;

    err_set(&e, code, "cannot write the token, so it is revoked again");
    failed(&e, EXIT_RETORT_FAILED);
    if (store_token_revoke(st, name, &e) < 0)
        failed(&e, EXIT_RETORT_FAILED);
    return EXIT_RETORT_FAILED;
}

static int print_token(const struct request *r, const char *text)
{
    if (r->options.json) {
        json_t *object = json_pack("{s:s, s:s}", "name", r->name, "token", text);
        json_dumpf(object, stdout, 0);
        json_decref(object);
    } else {
        fputs(text, stdout);
    }
    putchar('\n');
    return fflush(stdout) != 0 || ferror(stdout) ? -1 : 0;
}

static int action_new(const struct request *r, struct store *st, const char *dir)
{
    char text[TOKEN_TEXT_MAX];
    struct err e;

    if (store_token_new(st, r->name, &r->quota, r->operator, text, &e) < 0) {
        if (e.code == EINVAL)
            return usage_error("token", "%s", e.text);
        return e.code == EEXIST ? failed(&e, 1) : broken(&e, dir);
    }
    signal(SIGPIPE, SIG_IGN); /* or nobody would take it back */
    if (print_token(r, text) < 0)
        return take_back(st, r->name);
    if (isatty(STDERR_FILENO))
        fprintf(
            stderr,
            "retort: keep it now, it is shown only once (%s has its hash). Programs send it as\n"
            "retort: \"Authorization: Bearer TOKEN\".\n",
            dir);
    return 0;
}

static int action_revoke(const struct request *r, struct store *st, const char *dir)
{
    struct err e;
    int found = store_token_revoke(st, r->name, &e);

    if (found < 0)
        return broken(&e, dir);
    if (found == 0) {
        err_set(&e, 0, "there is no token \"%.80s\" in %s (\"retort token list\" shows them)",
                r->name, dir);
        return failed(&e, 1);
    }
    return 0;
}

static void write_time(int64_t ms, char *ret, size_t size)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;

    if (!gmtime_r(&s, &tm) || strftime(ret, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(ret, size, "?");
}

static json_t *json_quota(uint64_t value)
{
    return value == LIMIT_NONE ? json_null() : json_integer((json_int_t)value);
}

static void list_json(void *ctx, const struct token *t)
{
    char created[32], used[32];
    json_t *data = ctx;

    write_time(t->created_ms, created, sizeof(created));
    write_time(t->used_ms, used, sizeof(used));
    json_array_append_new(
        data, json_pack("{s:s, s:s, s:o, s:b, s:{s:o, s:o, s:o}}", "name", t->name, "created_at",
                        created, "last_used_at", t->used_ms ? json_string(used) : json_null(),
                        "operator", t->operator, "quota", "sessions", json_quota(t->quota.sessions),
                        "cells_per_minute", json_quota(t->quota.cells_per_minute), "memory",
                        json_quota(t->quota.memory)));
}

static void write_quota(uint64_t value, bool bytes, char *ret, size_t size)
{
    static const char units[] = "kmgt";
    unsigned unit = 0;

    if (value == LIMIT_NONE) {
        snprintf(ret, size, "none");
        return;
    }
    while (bytes && value && value % 1024 == 0 && unit < strlen(units)) {
        value /= 1024;
        unit++;
    }
    snprintf(ret, size, "%" PRIu64 "%.*s", value, unit ? 1 : 0, unit ? units + unit - 1 : "");
}

static void list_line(void *ctx, const struct token *t)
{
    char created[32], used[32], sessions[24], cells[24], memory[24];
    const int *width = ctx;

    write_time(t->created_ms, created, sizeof(created));
    write_time(t->used_ms, used, sizeof(used));
    write_quota(t->quota.sessions, false, sessions, sizeof(sessions));
    write_quota(t->quota.cells_per_minute, false, cells, sizeof(cells));
    write_quota(t->quota.memory, true, memory, sizeof(memory));
    printf("%-*s  %-20s  %-20s  %8s  %9s  %6s%s\n", *width, t->name, created,
           t->used_ms ? used : "never", sessions, cells, memory, t->operator? "  operator" : "");
}

static void widen(void *ctx, const struct token *t)
{
    int *width = ctx, len = (int)strlen(t->name);

    *width = len > *width ? len : *width;
}

static int action_list(const struct request *r, struct store *st, const char *dir)
{
    json_t *data = json_array();
    int width = 4, status = 0;
    struct err e;

    if (store_tokens(st, r->options.json ? list_json : widen,
                     r->options.json ? (void *)data : &width, &e) < 0) {
        status = broken(&e, dir);
    } else if (r->options.json) {
        json_t *list = json_pack("{s:O, s:n}", "data", data, "next");
        json_dumpf(list, stdout, 0);
        putchar('\n');
        json_decref(list);
    } else {
        printf("%-*s  %-20s  %-20s  %8s  %9s  %6s\n", width, "NAME", "CREATED", "LAST USED",
               "SESSIONS", "CELLS/MIN", "MEMORY");
        store_tokens(st, list_line, &width, &e);
    }
    json_decref(data);
    if (status == 0 && (ferror(stdout) || fflush(stdout) != 0)) {
        err_set(&e, errno, "cannot write the list");
        status = failed(&e, EXIT_RETORT_FAILED);
    }
    return status;
}

/* ---- the command line ---- */

static const struct action {
    const char *name;
    bool named;  /* takes a NAME */
    bool makes;  /* also what it works on */
    bool prints; /* something that --json changes */
    int (*run)(const struct request *r, struct store *st, const char *dir);
} actions[] = {
    {"new", true, true, true, action_new},
    {"list", false, false, true, action_list},
    {"revoke", true, false, false, action_revoke},
};

static int parse_count(const char *option, const char *text, uint64_t *ret)
{
    char *end;

    if (strcmp(text, "none") == 0) {
        *ret = LIMIT_NONE;
        return 0;
    }
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || n > INT64_MAX)
        return usage_error("token", "%s: \"%s\" is not a whole number", option, text);
    if (n == 0)
        return usage_error("token", "%s: 0 is not a quota; say \"none\", or revoke the token",
                           option);
    *ret = n;
    return 0;
}

static int parse_memory(const char *text, uint64_t *ret)
{
    struct limits l;
    struct err e;

    if (limits_set(&l, "memory", text, &e) < 0)
        return usage_error("token", "--%s", e.text);
    *ret = l.memory;
    return 0;
}

static int take_option(struct request *r, int c)
{
    switch (c) {
    case 'd':
        r->state = optarg;
        return 0;
    case 's':
        r->only_new = "--sessions";
        return parse_count("--sessions", optarg, &r->quota.sessions);
    case 'c':
        r->only_new = "--cells-per-minute";
        return parse_count("--cells-per-minute", optarg, &r->quota.cells_per_minute);
    case 'm':
        r->only_new = "--memory";
        return parse_memory(optarg, &r->quota.memory);
    case 'o':
        r->only_new = "--operator";
        r->operator= true;
        return 0;
    default:
        return EXIT_USAGE;
    }
}

static int parse_words(struct request *r, int argc, char **argv, const struct action **ret)
{
    int n = argc - optind;
    const struct action *found = NULL;

    if (n == 0)
        return usage_error("token", "say what to do: new NAME, list, or revoke NAME");
    for (unsigned i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(argv[optind], actions[i].name) == 0)
            found = &actions[i];
    }
    if (!found)
        return usage_error("token", "\"%s\" is not understood: say new NAME, list, or revoke NAME",
                           argv[optind]);
    if (n - 1 < found->named)
        return usage_error("token", "%s needs the name of a token", found->name);
    if (n - 1 > found->named)
        return usage_error("token", "\"%s\" is one too many", argv[optind + 1 + found->named]);
    if (!found->prints && r->options.json)
        return usage_error("token", "%s prints nothing, so it takes no --json", found->name);
    if (!found->makes && r->only_new)
        return usage_error("token", "%s is for \"retort token new\" only", r->only_new);
    r->name = found->named ? argv[optind + 1] : NULL;
    *ret = found;
    return 0;
}

static int parse(struct request *r, int argc, char **argv, const struct action **ret)
{
    static const struct option own[] = {
        {"state", required_argument, NULL, 'd'},
        {"sessions", required_argument, NULL, 's'},
        {"cells-per-minute", required_argument, NULL, 'c'},
        {"memory", required_argument, NULL, 'm'},
        {"operator", no_argument, NULL, 'o'},
        {0},
    };
    int c;

    while ((c = options_next(&r->options, argc, argv, "", own)) != -1) {
        int status = take_option(r, c);
        if (status)
            return status;
    }
    return r->options.help ? 0 : parse_words(r, argc, argv, ret);
}

/* Only "new" makes anything: a slip in --state must not leave a database behind. */
static int enter(const struct action *a, const char *given, char **ret, struct err *e)
{
    if (state_dir(given, a->makes, ret, e) < 0)
        return e->code == ENOENT ? 1 : EXIT_RETORT_FAILED;
    if (state_dir_enter(*ret, e) < 0)
        return EXIT_RETORT_FAILED;
    if (!a->makes && access("retort.db", F_OK) < 0) {
        err_set(e, errno, "no token was made in %s yet: cannot open %s/retort.db", *ret, *ret);
        return e->code == ENOENT ? 1 : EXIT_RETORT_FAILED;
    }
    return 0;
}

int verb_token(int argc, char **argv)
{
    struct request r = {.quota = {LIMIT_NONE, LIMIT_NONE, LIMIT_NONE}};
    const struct action *action = NULL;
    cleanup_free char *dir = NULL;
    struct store *st = NULL;
    struct err e;

    options_init(&r.options, "token");
    r.options.takes_json = true;
    int status = parse(&r, argc, argv, &action);
    if (status == 0 && r.options.help)
        return fputs(token_help, stdout) < 0 ? EXIT_RETORT_FAILED : 0;
    if (status)
        return status;
    status = enter(action, r.state, &dir, &e);
    if (status)
        return failed(&e, status);
    if (store_open(NULL, &st, &e) < 0)
        return broken(&e, dir);
    status = action->run(&r, st, dir);
    store_close(st);
    return status;
}
