/* run: one program in a fresh box.
 *
 *     read the program and open the files ─▶ keeper ─▶ box ─▶ uploads ─▶ the cell ─▶ results
 *
 * What can be wrong with the command line is found before anything is started, and is exit
 * status 2.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/export.h"
#include "guest/guest.h"
#include "cli/options.h"
#include "cli/failed.h"
#include "guest/owner.h"
#include "cli/place.h"
#include "cli/program.h"
#include "cli/show.h"
#include "cli/uploads.h"
#include "session/cell_json.h"

const char run_help[] =
    "usage: retort run [OPTION]… [-c CODE | FILE.py | -]\n"
    "\n"
    "Runs one Python program in a fresh sealed box, and ends the box.\n"
    "\n"
    "  -c CODE             run this text; else FILE.py; \"-\" reads standard input\n"
    "  -f FILE, -f N=FILE  copy a file into the workspace, under the name N (repeat)\n"
    "  -o DIR              copy new and changed files, and figures, to DIR\n"
    "  --environment E     a venv (a path) or a configured name; --wheels DIR for pip\n"
    "  --json              one JSON object; --summary SIZE: its part for models "
    "[8k]\n" OPTIONS_SERVER_HELP "\n" OPTIONS_LIMITS_HELP "\n"
    "Exit status: 0 it ran, 1 it raised, or what it gave to sys.exit; 2 wrong usage,\n"
    "124 time limit, 125 retort failed, 130 Ctrl-C, 137 memory limit.\n";

#define RUN_IDLE_S 300 /* how long a server keeps a box whose client was killed */

struct job {
    struct options options;
    const char *code; /* of -c */
    struct buf program;
    struct uploads uploads;
    const char *out_dir;
    struct export export;
    struct place place;
    struct owner owner;
    struct guest guest;
    struct show show;
};

/* ---- the command line ---- */

static int parse(struct job *j, int argc, char **argv)
{
    static const struct option own[] = {
        {"code", required_argument, NULL, 'c'},
        {"file", required_argument, NULL, 'f'},
        {"out", required_argument, NULL, 'o'},
        {0},
    };
    int c;

    options_init(&j->options, "run");
    j->options.takes_json = j->options.takes_environment = j->options.takes_summary = true;
    j->options.takes_limits = j->options.takes_server = true;
    while ((c = options_next(&j->options, argc, argv, "c:f:o:", own)) != -1) {
        if (c == OPTIONS_WRONG)
            return EXIT_USAGE;
        if (c == 'c' && j->code)
            return usage_error("run", "-c can be given once");
        if (c == 'c')
            j->code = optarg;
        if (c == 'f' && uploads_add(&j->uploads, "run", optarg) != 0)
            return EXIT_USAGE;
        if (c == 'o')
            j->out_dir = optarg;
    }
    return 0;
}

static int complain(const struct err *e)
{
    fprintf(stderr, "retort: run: %s\n", e->text);
    return EXIT_USAGE;
}

static int read_program(struct job *j, int argc, char **argv)
{
    const char *file = optind < argc ? argv[optind] : "-";
    struct err e;

    if (optind + 1 < argc)
        return usage_error("run", "one program at a time: \"%s\" is one too many",
                           argv[optind + 1]);
    if (j->code && optind < argc)
        return usage_error("run", "-c and \"%s\" are two programs: give one", file);
    if (j->code) {
        buf_add_text(&j->program, j->code);
        return program_check("the text of -c", &j->program, &e) < 0 ? complain(&e) : 0;
    }
    if (optind == argc && isatty(STDIN_FILENO))
        return usage_error("run", "which program? Give -c CODE, a FILE.py, or \"-\" for standard "
                                  "input (\"retort repl\" is interactive)");
    return program_read(file, &j->program, &e) < 0 ? complain(&e) : 0;
}

/* ---- running ---- */

/* The first Ctrl-C interrupts, the second leaves. 0 when the cell is finished. */
static int wait_for_cell(struct job *j, struct err *e)
{
    bool interrupted = false;

    while (!j->guest.cell) {
        int turn = owner_turn(&j->owner, -1, e);
        if (turn < 0)
            return -1;
        if (turn & TURN_SIGINT && !interrupted) {
            interrupted = true;
            guest_interrupt(&j->guest);
            turn &= ~TURN_SIGINT;
        }
        int status = turn_status(turn);
        if (status)
            return status;
    }
    return 0;
}

static int status_of_cell(const struct cell *c)
{
    int given = c->exit_code & 255;

    switch (c->status) {
    case CELL_INTERRUPTED:
        return EXIT_INTERRUPTED;
    case CELL_LIMIT:
        if (c->limit.kind == LIMIT_KIND_MEMORY)
            return EXIT_MEMORY;
        return c->limit.kind == LIMIT_KIND_WALL || c->limit.kind == LIMIT_KIND_CPU ? EXIT_TIME
                                                                                   : EXIT_RAISED;
    case CELL_CRASHED: /* os._exit has a status; a signal has none that is the program's */
        return c->left ? given : given > 0 && given <= 128 ? given : EXIT_RAISED;
    case CELL_FAILED:
        return c->left ? given : EXIT_RAISED;
    case CELL_OK:
        break;
    }
    return EXIT_RAN;
}

static void print_json(struct job *j, const struct cell *c)
{
    json_t *json = cell_json(c, j->options.summary);
    char *text = json_dumps(json, CELL_JSON_FLAGS);

    assert_that(text);
    outlet_line(&j->owner.out, 1, text);
    free(text);
    json_decref(json);
}

/* In a box that stands: everything from the uploads to the results. Returns the exit status, or -1
 * where retort failed. */
static int run_in_box(struct job *j, struct err *e)
{
    int turn = uploads_put(&j->uploads, &j->guest, e);
    if (turn != 0)
        return turn < 0 ? -1 : turn_status(turn);
    if (guest_start(&j->guest, j->program.data, j->program.len, 0, e) < 0)
        return -1;
    int status = wait_for_cell(j, e);
    if (status != 0)
        return status;
    const struct cell *c = j->guest.cell;
    show_end(&j->show, c);
    turn = show_files(&j->show, &j->guest, c);
    if (turn > 0)
        return turn_status(turn);
    if (j->options.json)
        print_json(j, c);
    return j->show.failed ? EXIT_RETORT_FAILED : status_of_cell(c);
}

static int run(struct job *j)
{
    struct options *o = &j->options;
    struct err e;

    if (place_start(&j->place, &j->owner, o, &e) < 0)
        return owner_failed(&e);
    show_init(&j->show, &j->owner.out, &j->guest.limits, j->out_dir ? &j->export : NULL, o->json);
    int status = guest_open(&j->guest, &j->owner, &o->limits, &j->show.view, &e);
    export_bound(&j->export, j->guest.limits.disk); /* also bounds what can come out of it */
    status = status > 0 ? turn_status(status) : status < 0 ? -1 : run_in_box(j, &e);
    guest_close(&j->guest);
    if (status == EXIT_INTERRUPTED)
        outlet_fresh_line(&j->owner.out);
    owner_stop(&j->owner);
    return status < 0 ? owner_failed(&e) : status;
}

static int prepare(struct job *j, int argc, char **argv)
{
    struct err e;
    int status = read_program(j, argc, argv);

    if (status == 0 && uploads_open(&j->uploads, &e) < 0)
        status = complain(&e);
    if (status == 0 && place_find(&j->place, &j->options, RUN_IDLE_S, &e) < 0)
        status = complain(&e);
    if (status == 0 && j->out_dir &&
        export_open(&j->export, j->out_dir, j->options.limits.disk, &e) < 0)
        status = complain(&e);
    return status;
}

int verb_run(int argc, char **argv)
{
    struct job j = {.export.fd = -1};
    int status = parse(&j, argc, argv);

    if (status == 0 && j.options.help) {
        fputs(run_help, stdout);
    } else if (status == 0) {
        status = prepare(&j, argc, argv);
        if (status == 0)
            status = run(&j);
    }
    uploads_done(&j.uploads);
    buf_done(&j.program);
    export_close(&j.export);
    place_done(&j.place);
    return status;
}
