/* options: see options.h. */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/cli.h"

/* Values of the shared options; a verb's own use letters. */
enum {
    OPT_HELP = 0x1000,
    OPT_JSON,
    OPT_ENVIRONMENT,
    OPT_WHEELS,
    OPT_SERVER,
    OPT_TOKEN_FILE,
    OPT_CHECKPOINTS,
    OPT_SUMMARY,
    OPT_LIMIT
};

#define MAX_OPTIONS 48

void options_init(struct options *o, const char *verb)
{
    *o = (struct options){
        .verb = verb, .environment = "default", .checkpoints = -1, .summary = SUMMARY_DEFAULT};
    limits_default(&o->limits);
    opterr = 0;
    optind = 0; /* glibc: start afresh, also the permutation */
}

static bool has(const struct option *own, const char *name)
{
    while (own->name && strcmp(own->name, name) != 0)
        own++;
    return own->name;
}

/* The shared options, then one for each limit, then the verb's own. */
static void merge(const struct option *own, const struct options *o, struct option *ret)
{
    unsigned n = 0;

    ret[n++] = (struct option){"help", no_argument, NULL, OPT_HELP};
    if (o->takes_json)
        ret[n++] = (struct option){"json", no_argument, NULL, OPT_JSON};
    if (o->takes_environment) {
        ret[n++] = (struct option){"environment", required_argument, NULL, OPT_ENVIRONMENT};
        ret[n++] = (struct option){"wheels", required_argument, NULL, OPT_WHEELS};
    }
    for (unsigned i = 0; o->takes_limits && limits_name(i); i++)
        if (!has(own, limits_name(i)))
            ret[n++] = (struct option){limits_name(i), required_argument, NULL, OPT_LIMIT + (int)i};
    if (o->takes_summary)
        ret[n++] = (struct option){"summary", required_argument, NULL, OPT_SUMMARY};
    if (o->takes_checkpoints)
        ret[n++] = (struct option){"checkpoints", required_argument, NULL, OPT_CHECKPOINTS};
    if (o->takes_server) {
        ret[n++] = (struct option){"server", required_argument, NULL, OPT_SERVER};
        ret[n++] = (struct option){"token-file", required_argument, NULL, OPT_TOKEN_FILE};
    }
    for (; own->name; own++) {
        assert_that(n < MAX_OPTIONS - 1);
        ret[n++] = *own;
    }
    ret[n] = (struct option){0};
}

static void unknown_long(const struct options *o, const char *word, const struct option *all)
{
    const char *best = NULL;
    unsigned distance = 0;
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    for (; all->name; all++)
        suggest_offer(name, all->name, &best, &distance);
    if (best)
        usage_error(o->verb, "unknown option --%s (did you mean --%s?)", name, best);
    else
        usage_error(o->verb, "unknown option --%s", name);
}

static void wrong(const struct options *o, int c, char **argv, const struct option *all)
{
    const char *word = argv[optind - 1];

    if (c == ':')
        usage_error(o->verb, "option %s needs a value", word);
    else if (optopt == 0)
        unknown_long(o, word, all);
    else if (strncmp(word, "--", 2) == 0 && strchr(word, '='))
        usage_error(o->verb, "option %.*s takes no value", (int)strcspn(word, "="), word);
    else
        usage_error(o->verb, "unknown option -%c", optopt);
}

static int set_limit(struct options *o, unsigned i)
{
    struct err e;

    if (limits_set(&o->limits, limits_name(i), optarg, &e) == 0) {
        o->limits_given |= 1u << i;
        return 0;
    }
    usage_error(o->verb, "--%s", e.text);
    return -1;
}

static int set_checkpoints(struct options *o)
{
    unsigned n;
    struct err e;

    if (limits_parse_checkpoints(optarg, &n, &e) < 0) {
        usage_error(o->verb, "--checkpoints: %s", e.text);
        return -1;
    }
    o->checkpoints = (int)n;
    return 0;
}

static int set_summary(struct options *o)
{
    struct err e;

    if (limits_parse_summary(optarg, &o->summary, &e) == 0)
        return 0;
    usage_error(o->verb, "--summary: %s", e.text);
    return -1;
}

int options_next(struct options *o, int argc, char **argv, const char *shorts,
                 const struct option *own)
{
    struct option all[MAX_OPTIONS];
    char colon[64];

    merge(own, o, all);
    snprintf(colon, sizeof(colon), ":h%s", shorts);
    for (;;) {
        int c = getopt_long(argc, argv, colon, all, NULL);
        if (c == 'h' || c == OPT_HELP) {
            o->help = true;
        } else if (c == OPT_JSON) {
            o->json = true;
        } else if (c == OPT_ENVIRONMENT) {
            o->environment = optarg;
            o->environment_given = true;
        } else if (c == OPT_WHEELS) {
            o->wheels = optarg;
        } else if (c == OPT_SERVER) {
            o->server = optarg;
        } else if (c == OPT_TOKEN_FILE) {
            o->token_file = optarg;
        } else if (c == OPT_CHECKPOINTS) {
            if (set_checkpoints(o) < 0)
                return OPTIONS_WRONG;
        } else if (c == OPT_SUMMARY) {
            if (set_summary(o) < 0)
                return OPTIONS_WRONG;
        } else if (c >= OPT_LIMIT) {
            if (set_limit(o, (unsigned)(c - OPT_LIMIT)) < 0)
                return OPTIONS_WRONG;
        } else if (c == '?' || c == ':') {
            wrong(o, c, argv, all);
            return OPTIONS_WRONG;
        } else {
            return c;
        }
    }
}
