/* env: what there is in an environment. Asked in a box of it, so that it is true for any. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "guest/guest.h"
#include "cli/options.h"
#include "cli/failed.h"
#include "guest/owner.h"
#include "cli/place.h"
#include "session/cell_json.h"
#include "session/sanitise.h"

const char env_help[] =
    "usage: retort env [OPTION]…\n"
    "\n"
    "Lists the libraries and commands that code in a box finds, with their versions,\n"
    "by the groups that make(1) installs: core, documents, media, more.\n"
    "\n"
    "  --prompt            only a paragraph that tells a model what it can use\n"
    "  --json              the list as one JSON object, the paragraph in it\n"
    "  --environment E     a venv (a path) or a configured name; --wheels DIR for "
    "pip\n" OPTIONS_SERVER_HELP "\n"
    "Exit status: 0; 2 wrong usage; 125 no box could be asked.\n";

#define IDLE_S 60

struct env {
    struct options options;
    bool prompt;
    struct place place;
};

/* ---- for people ---- */

static const char *text_of(const json_t *j, const char *key, char *ret, size_t size)
{
    return sanitise_name(json_string_value(json_object_get(j, key)), ret, size);
}

static void print_one(const json_t *j, bool command)
{
    char name[256], version[256], about[256];

    cleanup_free char *what =
        xasprintf("%s%s", text_of(j, "name", name, sizeof(name)), command ? " (command)" : "");
    printf("  %-24s %-16s %s\n", what, text_of(j, "version", version, sizeof(version)),
           text_of(j, "about", about, sizeof(about)));
}

static void print_of_group(const json_t *list, const char *group, bool commands)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *j = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(j, "group")), group) == 0)
            print_one(j, commands);
    }
}

static bool has_group(const json_t *list, size_t until, const char *group)
{
    for (size_t i = 0; i < until; i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "group")), group) ==
            0)
            return true;
    return false;
}

/* In the order in which they come, first in libraries, and then those that have commands alone. */
static void print_groups(const json_t *libraries, const json_t *commands)
{
    size_t n = json_array_size(libraries);

    for (size_t i = 0; i < n + json_array_size(commands); i++) {
        const json_t *j = i < n ? json_array_get(libraries, i) : json_array_get(commands, i - n);
        const char *group = json_string_value(json_object_get(j, "group"));
        char plain[256];
        if (has_group(libraries, i < n ? i : n, group) ||
            (i >= n && has_group(commands, i - n, group)))
            continue;
        printf("\n%s\n", text_of(j, "group", plain, sizeof(plain)));
        print_of_group(libraries, group, false);
        print_of_group(commands, group, true);
    }
}

static void print_wheels(const json_t *wheels)
{
    for (size_t i = 0; i < json_array_size(wheels); i++) {
        char name[256];
        printf(i == 0 ? "\nfor pip install\n  %s\n" : "  %s\n",
               sanitise_name(json_string_value(json_array_get(wheels, i)), name, sizeof(name)));
    }
}

static void print_table(const json_t *found)
{
    char python[256];

    printf("Python %s\n", text_of(found, "python", python, sizeof(python)));
    print_groups(json_object_get(found, "libraries"), json_object_get(found, "commands"));
    print_wheels(json_object_get(found, "wheels"));
}

/* ---- the verb ---- */

static void print(const struct env *v, const json_t *found)
{
    static char paragraph[2 * ENVIRONMENT_DESCRIPTION_MAX];

    if (v->prompt) {
        puts(text_of(found, "description", paragraph, sizeof(paragraph)));
    } else if (v->options.json) {
        json_dumpf(found, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        print_table(found);
    }
}

static int run(struct env *v)
{
    struct owner owner;
    struct guest g;
    json_t *found = NULL;
    struct err e;

    if (place_start(&v->place, &owner, &v->options, &e) < 0)
        return owner_failed(&e);
    int r = guest_open(&g, &owner, &v->options.limits, NULL, &e);
    if (r > 0)
        r = err_set(&e, EINTR, "stopped");
    if (r == 0)
        r = guest_environment(&g, v->prompt, &found, &e);
    guest_close(&g);
    owner_stop(&owner);
    if (r < 0)
        return e.code == EINTR ? EXIT_INTERRUPTED : owner_failed(&e);
    print(v, found);
    json_decref(found);
    return fflush(stdout) == 0 ? 0 : EXIT_PIPE;
}

static int parse(struct env *v, int argc, char **argv)
{
    static const struct option own[] = {{"prompt", no_argument, NULL, 'p'}, {0}};
    int c;

    options_init(&v->options, "env");
    v->options.takes_json = v->options.takes_environment = v->options.takes_server = true;
    while ((c = options_next(&v->options, argc, argv, "", own)) != -1) {
        if (c == OPTIONS_WRONG)
            return EXIT_USAGE;
        v->prompt = v->prompt || c == 'p';
    }
    if (optind < argc)
        return usage_error("env", "\"%s\" is not understood", argv[optind]);
    if (v->prompt && v->options.json)
        return usage_error("env", "--json has the paragraph of --prompt in it: give one of them");
    return 0;
}

int verb_env(int argc, char **argv)
{
    struct env v = {0};
    struct err e;
    int status = parse(&v, argc, argv);

    if (status != 0)
        return status;
    if (v.options.help) {
        fputs(env_help, stdout);
        return 0;
    }
    if (place_find(&v.place, &v.options, IDLE_S, &e) < 0) {
        fprintf(stderr, "retort: env: %s\n", e.text);
        return EXIT_USAGE;
    }
    status = run(&v);
    place_done(&v.place);
    return status;
}
