/* verify: a notebook's cells run again, and its answer held against what they put out.
 *
 *     read the notebook ─▶ are the files there that it was made with? ─▶ box ─▶ each cell ─▶ the answer's numbers
 *
 * The notebook is a stranger's: its code runs in a box, and nothing of it reaches a terminal as it is.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/failed.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/recheck.h"
#include "cli/uploads.h"
#include "guest/owner.h"
#include "session/cell_json.h"
#include "session/notebook_load.h"
#include "session/sanitise.h"
#include "session/words.h"

const char verify_help[] =
    "usage: retort verify [OPTION]… FILE.ipynb\n"
    "\n"
    "Runs a notebook's cells again in a fresh box: says which outputs came out the\n"
    "same, and which numbers of its answer stand in no output.\n"
    "\n"
    "  -f FILE, -f N=FILE  copy a file into the workspace, under the name N (repeat)\n"
    "  --environment E     a venv (a path) or a configured name; --wheels DIR for pip\n"
    "  --json              one JSON object\n" OPTIONS_SERVER_HELP "\n" OPTIONS_LIMITS_HELP "\n"
    "Exit status: 0 all the same and founded, 1 something differs or is unfounded,\n"
    "2 wrong usage, 125 retort failed, 130 Ctrl-C.\n";

#define VERIFY_IDLE_S 300 /* how long a server keeps a box whose client was killed */
#define NAME_TOLD 200

struct job {
    struct options options;
    struct uploads uploads;
    struct recorded recorded;
    json_t *files; /* [{"name","status"}]: those that the notebook was made with */
    bool files_differ;
    struct place place;
    struct owner owner;
};

/* ---- the command line ---- */

static int parse(struct job *j, int argc, char **argv)
{
    static const struct option own[] = {{"file", required_argument, NULL, 'f'}, {0}};
    int c;

    options_init(&j->options, "verify");
    j->options.takes_json = j->options.takes_environment = true;
    j->options.takes_limits = j->options.takes_server = true;
    while ((c = options_next(&j->options, argc, argv, "f:", own)) != -1) {
        if (c == OPTIONS_WRONG)
            return EXIT_USAGE;
        if (c == 'f' && uploads_add(&j->uploads, "verify", optarg) != 0)
            return EXIT_USAGE;
    }
    return 0;
}

static int complain(const struct err *e)
{
    char plain[sizeof(e->text)];

    fprintf(stderr, "retort: verify: %s\n", sanitise_name(e->text, plain, sizeof(plain)));
    return EXIT_USAGE;
}

static int read_notebook(struct job *j, int argc, char **argv)
{
    struct err e;

    if (optind == argc)
        return usage_error("verify", "which notebook? Give a FILE.ipynb, or \"-\" for standard "
                                     "input");
    if (optind + 1 < argc)
        return usage_error("verify", "one notebook at a time: \"%s\" is one too many",
                           argv[optind + 1]);
    return notebook_load(argv[optind], &j->recorded, &e) < 0 ? complain(&e) : 0;
}

/* ---- the files that it was made with ---- */

static const struct upload *find_upload(const struct job *j, const char *name)
{
    for (unsigned i = 0; i < j->uploads.n; i++)
        if (strcmp(j->uploads.list[i].name, name) == 0)
            return &j->uploads.list[i];
    return NULL;
}

static int ask_for(const json_t *file)
{
    const char *name = json_string_value(json_object_get(file, "name"));
    json_int_t bytes = json_integer_value(json_object_get(file, "size"));
    char plain[NAME_TOLD], size[WORDS_SIZE];

    sanitise_name(name, plain, sizeof(plain));
    fprintf(stderr, "retort: verify: the notebook was made with the file \"%s\"", plain);
    if (bytes > 0)
        fprintf(stderr, " (%s)", words_size((uint64_t)bytes, size));
    fprintf(stderr, ": give it as in -f %s%s\n", plain, strchr(name, '/') ? "=FILE" : "");
    return EXIT_USAGE;
}

/* What is given under this name, out of uploads_json. */
static const json_t *find_hash(const json_t *hashes, const char *name)
{
    for (size_t i = 0; i < json_array_size(hashes); i++) {
        const json_t *file = json_array_get(hashes, i);
        if (strcmp(json_string_value(json_object_get(file, "name")), name) == 0)
            return json_object_get(file, "sha256");
    }
    return NULL;
}

static void note_file(struct job *j, const char *name, const json_t *recorded, const json_t *given)
{
    bool same = given && json_equal(recorded, given);
    const char *status = same ? "same" : given ? "differs" : "unchecked";
    char plain[NAME_TOLD];

    json_array_append_new(j->files, json_pack("{s:s, s:s}", "name", name, "status", status));
    j->files_differ = j->files_differ || (given && !same);
    if (given && !same)
        fprintf(stderr, "retort: \"%s\" is not the file that the notebook was made with\n",
                sanitise_name(name, plain, sizeof(plain)));
}

static int check_files(struct job *j)
{
    json_t *hashes = uploads_json(&j->uploads);
    int status = 0;

    for (size_t i = 0; i < json_array_size(j->recorded.files); i++) {
        const json_t *file = json_array_get(j->recorded.files, i);
        const char *name = json_string_value(json_object_get(file, "name"));
        if (!find_upload(j, name))
            status = ask_for(file);
        else
            note_file(j, name, json_object_get(file, "sha256"), find_hash(hashes, name));
    }
    json_decref(hashes);
    return status;
}

/* ---- running ---- */

static void on_cell(void *ctx, const json_t *cell)
{
    recheck_show_cell(ctx, 1, cell);
}

static void print_json(struct job *j, const json_t *report)
{
    char *text = json_dumps(report, CELL_JSON_FLAGS);

    assert_that(text);
    outlet_line(&j->owner.out, 1, text);
    free(text);
}

static int finish(struct job *j, json_t *report)
{
    bool verified = json_is_true(json_object_get(report, "verified")) && !j->files_differ;

    json_object_set(report, "files", j->files);
    json_object_set_new(report, "verified", json_boolean(verified));
    if (j->options.json)
        print_json(j, report);
    else
        recheck_show_end(&j->owner.out, 1, report);
    json_decref(report);
    return verified ? EXIT_RAN : EXIT_RAISED;
}

static int run(struct job *j)
{
    struct recheck r = {
        .owner = &j->owner,
        .limits = &j->options.limits,
        .uploads = &j->uploads,
        .cells = j->recorded.cells,
        .answers = j->recorded.answers,
        .given = j->recorded.questions,
        .cell = j->options.json ? NULL : on_cell,
        .ctx = &j->owner.out,
    };
    json_t *report = NULL;
    struct err e;

    if (place_start(&j->place, &j->owner, &j->options, &e) < 0)
        return owner_failed(&e);
    int turn = recheck(&r, &report, &e);
    int status = turn > 0 ? turn_status(turn) : turn < 0 ? -1 : finish(j, report);
    if (status == EXIT_INTERRUPTED)
        outlet_fresh_line(&j->owner.out);
    owner_stop(&j->owner);
    return status < 0 ? owner_failed(&e) : status;
}

static int prepare(struct job *j, int argc, char **argv)
{
    struct err e;
    int status = read_notebook(j, argc, argv);

    if (status == 0 && uploads_open(&j->uploads, &e) < 0)
        status = complain(&e);
    if (status == 0)
        status = check_files(j);
    if (status == 0 && place_find(&j->place, &j->options, VERIFY_IDLE_S, &e) < 0)
        status = complain(&e);
    return status;
}

int verb_verify(int argc, char **argv)
{
    struct job j = {.files = json_array()};
    int status = parse(&j, argc, argv);

    if (status == 0 && j.options.help) {
        fputs(verify_help, stdout);
    } else if (status == 0) {
        status = prepare(&j, argc, argv);
        if (status == 0)
            status = run(&j);
    }
    uploads_done(&j.uploads);
    recorded_done(&j.recorded);
    json_decref(j.files);
    place_done(&j.place);
    return status;
}
