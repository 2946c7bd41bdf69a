/* repl: an interactive session in a box.
 *
 * A cell is read line by line; whether it is finished is the interpreter's own judgement. When the
 * interpreter dies (a limit, a crash), that is said; the session goes on with what was kept of it, or where
 * nothing was a fresh one takes its place.
 */
#include "cli/repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/branch.h"
#include "cli/cli.h"
#include "cli/failed.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/program.h"
#include "session/words.h"
#include "wire/proto.h"

const char repl_help[] =
    "usage: retort repl [OPTION]…\n"
    "\n"
    "An interactive Python session in a sealed box. Ctrl-C interrupts a cell; Ctrl-D\n"
    "leaves. %undo goes back to before the last cell, %undo N to after cell N, and\n"
    "%checkpoints says where to. %fork goes on in a branch of now, %fork N of after\n"
    "cell N; %branches lists them, %branch K goes to one (1: the first session).\n"
    "\n"
    "  -o DIR              copy new and changed files, and figures, to DIR\n"
    "  --environment E     a venv (a path) or a configured name; --wheels DIR for pip\n"
    "  --checkpoints N     earlier states that are kept, 0 for none  [8]\n"
    "  --json              a request a line in, a result out (--summary SIZE [8k]):\n"
    "                      {\"code\":\"…\",\"timeout\":S} or "
    "{\"interrupt\":true}\n" OPTIONS_SERVER_HELP "\n" OPTIONS_LIMITS_HELP;

/* ---- reading a cell ---- */

enum reading {
    READ_CELL,
    READ_COMMAND,
    READ_NOTHING,
    READ_LEAVE,
    READ_STOP,
    READ_INTERRUPTED,
    READ_FAILED
};

static bool is_blank(const struct buf *line)
{
    for (size_t i = 0; i < line->len; i++) {
        if (!strchr(" \t\f", line->data[i]))
            return false;
    }
    return true;
}

static bool says_leave(struct buf *line)
{
    static const char *const words[] = {"exit", "quit", "exit()", "quit()"};

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(buf_text(line), words[i]) == 0)
            return true;
    }
    return false;
}

/* Is it finished? *indent gets what the next line may begin with. */
static bool is_complete(struct repl *r, const struct buf *code, bool blank, char **indent)
{
    cleanup_buf struct buf asked = {0};
    int state = CHECK_COMPLETE;
    struct err ignored;

    free(*indent);
    *indent = NULL;
    /* Without a newline at the end a block may go on; an empty line ends it. */
    buf_add(&asked, code->data, code->len);
    buf_add(&asked, "\n", blank);
    /* An interpreter that cannot say is given the cell: running it tells. */
    if (guest_check(&r->branch->guest, asked.data, asked.len, &state, indent, &ignored) < 0)
        return true;
    return state != CHECK_INCOMPLETE;
}

static enum reading after_event(enum input_event event, const struct buf *code)
{
    switch (event) {
    case INPUT_END:
        return code->len ? READ_CELL : READ_LEAVE;
    case INPUT_INTERRUPTED:
        return READ_INTERRUPTED;
    case INPUT_FAILED:
        return READ_FAILED;
    default:
        return READ_STOP;
    }
}

/* In [12]:
 *     ...:   as wide as the prompt above it */
static void make_prompts(unsigned n, char first[32], char next[32])
{
    int width = snprintf(first, 32, "In [%u]: ", n);
    snprintf(next, 32, "%*s", width, "...: ");
}

static enum reading read_cell(struct repl *r, struct input *in, struct buf *code, struct err *e)
{
    cleanup_free char *indent = NULL;
    char first[32], next[32];

    make_prompts(r->branch->guest.next, first, next);
    for (;;) {
        cleanup_buf struct buf line = {0};
        /* While a paste is coming in, it brings its own indentation. */
        const char *prefill = indent && !input_goes_on(in) ? indent : "";
        enum input_event event = input_line(in, code->len ? next : first, prefill, &line, e);
        if (event != INPUT_LINE)
            return after_event(event, code);
        bool blank = is_blank(&line);
        if (code->len == 0 && blank)
            return READ_NOTHING;
        if (code->len == 0 && says_leave(&line))
            return READ_LEAVE;
        if (code->len == 0 && command_is(buf_text(&line))) {
            buf_add(code, line.data, line.len);
            return READ_COMMAND;
        }
        if (code->len)
            buf_add(code, "\n", 1);
        if (!blank)
            buf_add(code, line.data, line.len);
        if (code->len > PROGRAM_MAX)
            return READ_CELL;
        if (is_complete(r, code, blank, &indent) && !(blank && input_goes_on(in)))
            return READ_CELL;
    }
}

/* ---- running it ---- */

int repl_fresh(struct repl *r, struct err *e)
{
    guest_close(&r->branch->guest);
    r->branch->of = 0;
    return guest_open(&r->branch->guest, &r->owner, &r->options.limits, &r->show.view, e);
}

static int wait_for_cell(struct repl *r, struct err *e)
{
    while (!r->branch->guest.cell) {
        int turn = owner_turn(&r->owner, -1, e);
        if (turn < 0)
            return -1;
        if (turn & TURN_SIGINT)
            guest_interrupt(&r->branch->guest);
        if (turn & (TURN_STOP | TURN_CLOSED))
            return turn;
    }
    return 0;
}

static int revive(struct repl *r, struct err *e)
{
    int turn = repl_fresh(r, e);

    if (turn == 0)
        outlet_note(&r->owner.out, "the interpreter is gone, and its variables with it; "
                                   "a fresh session goes on");
    return turn;
}

static void say_restored(struct repl *r, const struct cell *c)
{
    if (c->restored_to)
        outlet_note(&r->owner.out,
                    "the interpreter is gone; the session goes on with the state after cell %u",
                    c->restored_to);
    else
        outlet_note(&r->owner.out, "the interpreter is gone; the session goes on as it began");
}

/* Run one cell to its end. 0: go on; more: a turn or a program that says to leave, with *status. */
static int run_cell(struct repl *r, const struct buf *code, int *status, struct err *e)
{
    snprintf(r->label, sizeof(r->label), "Out[%u]: ", r->branch->guest.next);
    if (guest_start(&r->branch->guest, code->data, code->len, 0, e) < 0)
        return -1;
    int turn = wait_for_cell(r, e);
    if (turn != 0)
        return turn;
    struct cell *c = guest_take(&r->branch->guest);
    bool ended = c->session_ended, left = c->left && !ended && !c->restored;
    if (left)
        *status = c->exit_code & 255;
    show_end(&r->show, c);
    if (c->restored)
        say_restored(r, c);
    turn = show_files(&r->show, &r->branch->guest, c) & ~TURN_SIGINT;
    cell_free(c);
    if (left || turn)
        return TURN_STOP;
    return ended ? revive(r, e) : 0;
}

/* It may have gone to a branch whose interpreter died meanwhile. */
static int do_command(struct repl *r, const char *line, struct err *e)
{
    int turn = command_do(r, line, e);

    return turn == 0 && guest_ended(&r->branch->guest) ? revive(r, e) : turn;
}

/* ---- the conversation ---- */

static void limit_text(const struct limits *l, unsigned i, char *ret, size_t size)
{
    static const char *const units[] = {" s a cell", " s of CPU",  NULL, NULL,
                                        NULL,        " processes", NULL, " cores"};
    int none;
    double value = limits_value(l, i, &none);
    char bytes[WORDS_SIZE];

    if (units[i])
        snprintf(ret, size, "%g%s", value, units[i]);
    else
        snprintf(ret, size, "%s %s", words_limit_size((uint64_t)value, bytes), limits_name(i));
}

static void banner(struct repl *r)
{
    static const char *const shown[] = {"timeout", "memory", "disk", "pids"};
    const struct limits *l = &r->branch->guest.limits;
    cleanup_buf struct buf text = {0};

    for (unsigned i = 0; limits_name(i); i++) {
        for (unsigned j = 0; j < sizeof(shown) / sizeof(shown[0]); j++) {
            char one[64];
            int none;
            limits_value(l, i, &none);
            if (none || strcmp(limits_name(i), shown[j]) != 0)
                continue;
            limit_text(l, i, one, sizeof(one));
            buf_add_fmt(&text, "%s, ", one);
        }
    }
    outlet_say(&r->owner.out, 1,
               "retort " RETORT_VERSION ": Python in a sealed box. Ctrl-C interrupts, Ctrl-D "
               "leaves.\nLimits: %sno network.\n%%undo goes back, %%fork goes on in a branch.\n\n",
               buf_text(&text));
}

static int converse(struct repl *r, struct input *in, struct err *e)
{
    bool person = input_is_terminal(in);

    r->show.result_label = person ? r->label : "";
    for (;;) {
        cleanup_buf struct buf code = {0};
        enum reading reading = read_cell(r, in, &code, e);
        if (reading == READ_NOTHING || (reading == READ_INTERRUPTED && person))
            continue;
        if (reading == READ_FAILED)
            return -1;
        if (reading == READ_LEAVE)
            return EXIT_RAN;
        if (reading != READ_CELL && reading != READ_COMMAND)
            return reading == READ_INTERRUPTED ? EXIT_INTERRUPTED : EXIT_TERMINATED;
        if (program_check("the cell", &code, e) < 0) {
            outlet_note(&r->owner.out, "%s", e->text);
            continue;
        }
        int status = EXIT_TERMINATED, turn = guest_ended(&r->branch->guest) ? revive(r, e) : 0;
        if (turn == 0)
            turn = reading == READ_COMMAND ? do_command(r, buf_text(&code), e)
                                           : run_cell(r, &code, &status, e);
        if (turn < 0)
            return -1;
        if (turn > 0)
            return r->owner.out.closed ? EXIT_PIPE : status;
        if (person) {
            outlet_fresh_line(&r->owner.out);
            outlet_say(&r->owner.out, 1, "\n");
        }
    }
}

static int talk(struct repl *r, struct err *e)
{
    struct input *in = input_new(&r->owner);

    if (input_is_terminal(in))
        banner(r);
    int status = converse(r, in, e);
    input_free(in);
    return status;
}

/* ---- the verb ---- */

static int parse(struct repl *r, int argc, char **argv)
{
    static const struct option own[] = {{"out", required_argument, NULL, 'o'}, {0}};
    int c;

    options_init(&r->options, "repl");
    r->options.takes_json = r->options.takes_environment = true;
    r->options.takes_limits = r->options.takes_server = r->options.takes_checkpoints = true;
    r->options.takes_summary = true;
    while ((c = options_next(&r->options, argc, argv, "o:", own)) != -1) {
        if (c == OPTIONS_WRONG)
            return EXIT_USAGE;
        if (c == 'o')
            r->out_dir = optarg;
    }
    if (optind < argc)
        return usage_error("repl", "\"%s\" is not understood: \"retort run %s\" runs a program",
                           argv[optind], argv[optind]);
    return 0;
}

static int run(struct repl *r)
{
    bool json = r->options.json;
    struct err e;

    if (place_start(&r->place, &r->owner, &r->options, &e) < 0)
        return owner_failed(&e);
    r->branch = r->branches;
    r->n_branches = 1;
    show_init(&r->show, &r->owner.out, &r->branch->guest.limits, r->out_dir ? &r->export : NULL,
              json);
    int status = repl_fresh(r, &e);
    export_bound(&r->export, r->branch->guest.limits.disk);
    if (status > 0)
        status = status & TURN_SIGINT ? EXIT_INTERRUPTED : EXIT_TERMINATED;
    else if (status == 0)
        status = json ? repl_json(r, &e) : talk(r, &e);
    branch_close_all(r);
    owner_stop(&r->owner);
    return status < 0 ? owner_failed(&e) : status;
}

int verb_repl(int argc, char **argv)
{
    struct repl r = {.export.fd = -1};
    struct err e;
    int status = parse(&r, argc, argv);

    if (status == 0 && r.options.help) {
        fputs(repl_help, stdout);
        return 0;
    }
    if (status == 0 &&
        (place_find(&r.place, &r.options, 0, &e) < 0 ||
         (r.out_dir && export_open(&r.export, r.out_dir, r.options.limits.disk, &e) < 0))) {
        fprintf(stderr, "retort: repl: %s\n", e.text);
        status = EXIT_USAGE;
    }
    if (status == 0)
        status = run(&r);
    export_close(&r.export);
    place_done(&r.place);
    return status;
}
