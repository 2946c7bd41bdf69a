/* doctor: tries every layer of isolation on this host by doing it. */
#include <errno.h>
#include <jansson.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "box/steps.h"
#include "cli/cli.h"
#include "cli/environment.h"
#include "guest/guest.h"
#include "cli/options.h"
#include "cli/failed.h"
#include "guest/owner.h"
#include "cli/trials.h"

const char doctor_help[] =
    "usage: retort doctor [OPTION]…\n"
    "\n"
    "Makes boxes on this host, tries every layer of isolation inside them, and says\n"
    "what holds, what does not, and the remedy.\n"
    "\n"
    "  --environment E     a venv (a path) or a configured name; --wheels DIR for pip\n"
    "  --steps             only print the names of the steps that make a box\n"
    "  --json              print the findings as one JSON object\n"
    "\n"
    "Exit status: 0 every essential layer holds, 1 one does not, 2 wrong usage.\n";

struct doctor {
    struct options options;
    struct environment env;
    struct owner owner;
    bool started;
    bool utf8;
    unsigned tried, broken, weak;
    json_t *host, *steps, *trials;
};

/* ---- printing ---- */

enum mark { MARK_GOOD, MARK_BAD, MARK_WEAK, MARK_NONE };

static const char *mark_text(const struct doctor *d, enum mark m)
{
    static const char *const utf8[] = {"✓", "✗", "!", "·"};
    static const char *const ascii[] = {"ok  ", "FAIL", "weak", "-   "};

    return d->utf8 ? utf8[m] : ascii[m];
}

static void heading(const struct doctor *d, const char *text)
{
    if (!d->options.json)
        printf("\n%s\n", text);
}

/* "label: words" below a line, wrapped for a terminal of 80 columns. */
static void below(const struct doctor *d, const char *label, const char *words)
{
    int indent = d->utf8 ? 4 : 7, column = 0;

    if (d->options.json || !words || !*words)
        return;
    cleanup_free char *text = xasprintf("%s: %s", label, words);
    for (const char *word = text; *word; word += strspn(word, " \n")) {
        int len = (int)strcspn(word, " \n");
        bool first = column == 0 || column + 1 + len > 79;
        if (first && column)
            putchar('\n');
        column = first ? indent + len : column + 1 + len;
        printf("%*s%.*s", first ? indent : 1, "", len, word);
        word += len;
    }
    putchar('\n');
}

/* "  ✓ name       what there is to say" */
static void line(const struct doctor *d, enum mark m, const char *name, const char *text)
{
    if (d->options.json)
        return;
    if (*text)
        printf("  %s %-22s %s\n", mark_text(d, m), name, text);
    else
        printf("  %s %s\n", mark_text(d, m), name);
    fflush(stdout);
}

/* ---- the host ---- */

static void tell_kernel(struct doctor *d)
{
    struct utsname u;

    if (uname(&u) < 0)
        return;
    cleanup_free char *text = xasprintf("%s %s, %s", u.sysname, u.release, u.machine);
    line(d, MARK_GOOD, "kernel", text);
    json_object_set_new(d->host, "kernel", json_string(u.release));
    json_object_set_new(d->host, "machine", json_string(u.machine));
}

static void tell_user(struct doctor *d)
{
    uid_t uid = geteuid();
    cleanup_free char *text =
        uid == 0 ? xstrdup("root: each box has a uid of its own on the host")
                 : xasprintf("uid %u: boxes share it, apart by namespaces", (unsigned)uid);

    line(d, MARK_GOOD, "user", text);
    json_object_set_new(d->host, "uid", json_integer(uid));
    json_object_set_new(d->host, "root", json_boolean(uid == 0));
}

static void tell_cgroups(struct doctor *d, const struct keeper_facts *f)
{
    char text[300];

    if (f->cgroup_version) {
        snprintf(text, sizeof(text), "version %d", f->cgroup_version);
        line(d, MARK_GOOD, "cgroups", text);
    } else {
        line(d, MARK_WEAK, "cgroups", "none");
        below(d, "remedy", f->cgroup_reason);
        d->weak++;
    }
    json_object_set_new(d->host, "cgroup_version", json_integer(f->cgroup_version));
    if (!f->cgroup_version)
        json_object_set_new(d->host, "cgroup_reason", json_string(f->cgroup_reason));
}

static void tell_landlock(struct doctor *d, const struct keeper_facts *f)
{
    char text[64];

    snprintf(text, sizeof(text), f->landlock_abi ? "ABI %d" : "none", f->landlock_abi);
    line(d, f->landlock_abi ? MARK_GOOD : MARK_WEAK, "Landlock", text);
    if (!f->landlock_abi) {
        below(d, "remedy",
              "Linux 5.13 or newer with \"landlock\" in the lsm= list of the boot line; "
              "the other layers hold without it");
        d->weak++;
    }
    json_object_set_new(d->host, "landlock_abi", json_integer(f->landlock_abi));
}

/* Which limits stand on what where there are no cgroups. */
static void tell_without_cgroups(struct doctor *d)
{
    static const char *const how[][2] = {
        {"memory", "RLIMIT_DATA for each process; init watches the sum"},
        {"pids", "RLIMIT_NPROC in the box's user namespace"},
        {"cpus", "not limited; numerical libraries use as many threads"},
        {"cpu", "init adds up the time of the box's processes"},
        {"disk, files", "the size of the workspace's tmpfs, as always"},
        {"timeout, output", "retort itself, as always"},
    };
    json_t *json = json_object();

    heading(d, "Limits, where there are no cgroups");
    for (unsigned i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        line(d, MARK_NONE, how[i][0], how[i][1]);
        json_object_set_new(json, how[i][0], json_string(how[i][1]));
    }
    json_object_set_new(d->host, "limits_without_cgroups", json);
}

/* ---- the steps ---- */

/* Up to the failed one they went well, after it they were not tried. NULL: all went well. */
static void tell_steps(struct doctor *d, const char *failed, const char *why)
{
    bool reached = false;

    heading(d, "Making a box, step by step");
    for (unsigned i = 0; steps_name(i); i++) {
        const char *name = steps_name(i);
        if (geteuid() != 0 && steps_root_only(name))
            continue;
        bool here = failed && strcmp(failed, name) == 0;
        const char *state = here ? "failed" : reached ? "not_tried" : "ok";
        json_t *json = json_pack("{s:s, s:s}", "name", name, "status", state);
        if (here) {
            const char *remedy = steps_remedy(name);
            line(d, MARK_BAD, name, "FAILED");
            below(d, "why", why);
            below(d, "remedy", remedy);
            json_object_set_new(json, "error", json_string(why));
            json_object_set_new(json, "remedy", remedy ? json_string(remedy) : json_null());
        } else {
            line(d, reached ? MARK_NONE : MARK_GOOD, name, reached ? "not tried" : "");
        }
        json_array_append_new(d->steps, json);
        reached = reached || here;
    }
}

static void tell_failure(struct doctor *d, const struct err *e)
{
    char name[64];
    const char *step = failed_step(e, name, sizeof(name));

    d->broken++;
    if (step) {
        const char *why = strstr(e->text, step) + strlen(step);
        tell_steps(d, step, why + strspn(why, ": "));
        return;
    }
    heading(d, "Making a box");
    line(d, MARK_BAD, "box", e->text);
    json_array_append_new(d->steps, json_pack("{s:s, s:s, s:s}", "name", "box", "status", "failed",
                                              "error", e->text));
}

/* ---- the trials ---- */

static void tell_trial(struct doctor *d, const struct trial *t, enum trial_result r,
                       const char *detail)
{
    static const char *const names[] = {"held", "broke", "failed"};
    enum mark m = r == TRIAL_HELD ? MARK_GOOD : t->essential ? MARK_BAD : MARK_WEAK;

    line(d, m, t->name, t->claim);
    if (r != TRIAL_HELD) {
        below(d, "seen", detail);
        below(d, "remedy", t->remedy);
    }
    d->tried++;
    d->broken += m == MARK_BAD;
    d->weak += m == MARK_WEAK;
    json_t *json = json_pack("{s:s, s:s, s:s, s:b, s:s}", "name", t->name, "claim", t->claim,
                             "result", names[r], "essential", t->essential, "detail", detail);
    if (r != TRIAL_HELD && t->remedy)
        json_object_set_new(json, "remedy", json_string(t->remedy));
    json_array_append_new(d->trials, json);
}

static int try_all(struct doctor *d, struct err *e)
{
    bool cgroups = d->owner.keeper.facts.cgroup_version != 0;

    heading(d, "Trials inside boxes");
    for (unsigned i = 0; trials_get(i); i++) {
        const struct trial *t = trials_get(i);
        enum trial_result result = TRIAL_FAILED;
        char detail[400] = "not tried: there are no cgroups";
        if ((cgroups || !t->needs_cgroup) &&
            trials_run(t, &d->owner, &result, detail, sizeof(detail), e) < 0)
            return -1;
        tell_trial(d, t, result, detail);
    }
    return 0;
}

/* ---- the verb ---- */

static void summary(const struct doctor *d)
{
    if (d->options.json) {
        json_t *all =
            json_pack("{s:s, s:O, s:O, s:O, s:b}", "version", RETORT_VERSION, "host", d->host,
                      "steps", d->steps, "trials", d->trials, "ok", d->broken == 0);
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(all);
        return;
    }
    if (d->broken && !d->tried)
        printf("\nNo box can be made on this host, so no code runs.\n");
    else if (d->broken)
        printf("\n%u of %u trials failed: do not run foreign code on this host.\n", d->broken,
               d->tried);
    else
        printf("\nEvery essential layer holds, in %u trials%s.\n", d->tried,
               d->weak ? "; what could be stronger is marked" : "");
}

static int examine(struct doctor *d, struct err *e)
{
    struct limits limits;
    struct guest g;

    limits_default(&limits);
    heading(d, "This host");
    tell_kernel(d);
    tell_user(d);
    if (owner_start(&d->owner, &d->env, &limits, e) < 0) {
        tell_failure(d, e);
        return 0;
    }
    d->started = true;
    tell_cgroups(d, &d->owner.keeper.facts);
    tell_landlock(d, &d->owner.keeper.facts);
    int turn = guest_open(&g, &d->owner, &limits, NULL, e);
    if (turn > 0)
        return err_set(e, EINTR, "stopped");
    if (turn < 0) {
        tell_failure(d, e);
        return 0;
    }
    guest_close(&g);
    tell_steps(d, NULL, NULL);
    if (d->owner.keeper.facts.cgroup_version == 0)
        tell_without_cgroups(d);
    return try_all(d, e);
}

static int parse(struct doctor *d, int argc, char **argv, bool *ret_steps)
{
    static const struct option own[] = {{"steps", no_argument, NULL, 's'}, {0}};
    int c;

    options_init(&d->options, "doctor");
    d->options.takes_json = d->options.takes_environment = true;
    while ((c = options_next(&d->options, argc, argv, "", own)) != -1) {
        if (c == OPTIONS_WRONG)
            return EXIT_USAGE;
        *ret_steps = *ret_steps || c == 's';
    }
    if (optind < argc)
        return usage_error("doctor", "\"%s\" is not understood", argv[optind]);
    return 0;
}

static int run(struct doctor *d)
{
    struct err e;

    if (environment_load(d->options.environment, "", d->options.wheels, &d->env, &e) < 0) {
        fprintf(stderr, "retort: doctor: %s\n", e.text);
        return EXIT_USAGE;
    }
    d->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    d->host = json_object();
    d->steps = json_array();
    d->trials = json_array();
    if (!d->options.json)
        printf("retort " RETORT_VERSION ": what this host enforces\n");
    int r = examine(d, &e);
    if (d->started)
        owner_stop(&d->owner);
    if (r == 0)
        summary(d);
    json_decref(d->host);
    json_decref(d->steps);
    json_decref(d->trials);
    environment_done(&d->env);
    if (r < 0)
        return e.code == EINTR ? EXIT_INTERRUPTED : owner_failed(&e);
    return d->broken ? 1 : 0;
}

int verb_doctor(int argc, char **argv)
{
    struct doctor d = {0};
    bool steps = false;
    int status = parse(&d, argc, argv, &steps);

    if (status != 0)
        return status;
    if (d.options.help)
        fputs(doctor_help, stdout);
    else if (steps)
        for (unsigned i = 0; steps_name(i); i++) {
            if (geteuid() == 0 || !steps_root_only(steps_name(i)))
                puts(steps_name(i));
        }
    else
        return run(&d);
    return 0;
}
