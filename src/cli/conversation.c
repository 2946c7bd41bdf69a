/* conversation: see conversation.h. */
#include "cli/conversation.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/exchange.h"
#include "agent/reply.h"
#include "agent/talk.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/recheck.h"
#include "session/cell_json.h"
#include "session/notebook.h"

#define IDLE_S 1800 /* how long a server keeps a box whose client was killed */

/* ---- the command line ---- */

enum {
    OPT_MODEL = 1000,
    OPT_BASE_URL,
    OPT_PROTOCOL,
    OPT_KEY_FILE,
    OPT_MODEL_CONFIG,
    OPT_TOOLS,
    OPT_VISION,
    OPT_STREAM,
    OPT_ATTEMPTS,
    OPT_CELLS,
    OPT_TIME,
    OPT_TOKENS,
    OPT_COST,
    OPT_PRICE_IN,
    OPT_PRICE_OUT,
    OPT_CLEAN,
    OPT_SAVE,
    OPT_VERIFY,
    OPT_LAST,
};
#define N_OPTIONS_MAX 64

static const struct option common[] = {
    {"file", required_argument, NULL, 'f'},
    {"out", required_argument, NULL, 'o'},
    {"quiet", no_argument, NULL, 'q'},
    {"model", required_argument, NULL, OPT_MODEL},
    {"base-url", required_argument, NULL, OPT_BASE_URL},
    {"protocol", required_argument, NULL, OPT_PROTOCOL},
    {"key-file", required_argument, NULL, OPT_KEY_FILE},
    {"model-config", required_argument, NULL, OPT_MODEL_CONFIG},
    {"tools", required_argument, NULL, OPT_TOOLS},
    {"vision", required_argument, NULL, OPT_VISION},
    {"stream", required_argument, NULL, OPT_STREAM},
    {"attempts", required_argument, NULL, OPT_ATTEMPTS},
    {"max-cells", required_argument, NULL, OPT_CELLS},
    {"max-time", required_argument, NULL, OPT_TIME},
    {"max-tokens", required_argument, NULL, OPT_TOKENS},
    {"max-cost", required_argument, NULL, OPT_COST},
    {"price-in", required_argument, NULL, OPT_PRICE_IN},
    {"price-out", required_argument, NULL, OPT_PRICE_OUT},
    {"clean-retries", required_argument, NULL, OPT_CLEAN},
    {"save", required_argument, NULL, OPT_SAVE},
    {"verify", no_argument, NULL, OPT_VERIFY},
    {0},
};

static const char *name_of(int option)
{
    for (unsigned i = 0; common[i].name; i++)
        if (common[i].val == option)
            return common[i].name;
    return "?";
}

static int wrong(const struct conversation *c, int option, const char *what)
{
    return usage_error(c->options.verb, "--%s: \"%s\" is not %s", name_of(option), optarg, what);
}

static int take_yes_no(const struct conversation *c, int option, bool *ret)
{
    *ret = strcmp(optarg, "yes") == 0 || strcmp(optarg, "on") == 0;
    if (*ret || strcmp(optarg, "no") == 0 || strcmp(optarg, "off") == 0)
        return 0;
    return wrong(c, option, "\"yes\" or \"no\"");
}

static int take_say(const struct conversation *c, int option, enum model_say *ret)
{
    bool yes;
    int status = take_yes_no(c, option, &yes);

    *ret = yes ? SAY_YES : SAY_NO;
    return status;
}

/* A number above 0; "none" is 0, where there need not be a bound. */
static int take_number(const struct conversation *c, int option, double *ret)
{
    char *end;
    double value = strcmp(optarg, "none") == 0 ? 0 : strtod(optarg, &end);

    if (strcmp(optarg, "none") != 0 && (end == optarg || *end || !(value > 0) || value > 1e15))
        return wrong(c, option, "a number above 0, or \"none\"");
    *ret = value;
    return 0;
}

static int take_bound(struct conversation *c, int option)
{
    struct agent_bounds *b = &c->bounds;
    double value = 0;
    struct err e;

    if (option == OPT_TIME && strcmp(optarg, "none") != 0) {
        if (limits_parse_seconds(optarg, &value, &e) < 0)
            return usage_error(c->options.verb, "--max-time: %s", e.text);
    } else if (take_number(c, option, &value) != 0) {
        return EXIT_USAGE;
    }
    unsigned count = value > UINT_MAX ? UINT_MAX : value > 0 && value < 1 ? 1 : (unsigned)value;
    switch (option) {
    case OPT_ATTEMPTS:
        b->attempts = count;
        break;
    case OPT_CELLS:
        b->cells = count;
        break;
    case OPT_TIME:
        b->wall_ms = (uint64_t)(value * 1000);
        break;
    case OPT_TOKENS:
        b->tokens = (uint64_t)value;
        break;
    case OPT_COST:
        b->cost = value;
        break;
    case OPT_PRICE_IN:
        c->wish.price_in = value;
        break;
    default:
        c->wish.price_out = value;
    }
    return 0;
}

static int take_common(struct conversation *c, int option)
{
    bool clean = true;
    int status = 0;

    switch (option) {
    case 'f':
        return uploads_add(&c->uploads, c->options.verb, optarg);
    case 'o':
        c->out_dir = optarg;
        return 0;
    case 'q':
        c->quiet = true;
        return 0;
    case OPT_MODEL:
        c->wish.model = optarg;
        return 0;
    case OPT_BASE_URL:
        c->wish.base_url = optarg;
        return 0;
    case OPT_PROTOCOL:
        c->wish.protocol = optarg;
        return 0;
    case OPT_KEY_FILE:
        c->wish.key_file = optarg;
        return 0;
    case OPT_MODEL_CONFIG:
        c->wish.config = optarg;
        return 0;
    case OPT_SAVE:
        c->save = optarg;
        return 0;
    case OPT_VERIFY:
        c->verify = true;
        return 0;
    case OPT_TOOLS:
        return take_say(c, option, &c->wish.tools);
    case OPT_VISION:
        return take_say(c, option, &c->wish.sees);
    case OPT_STREAM:
        return take_say(c, option, &c->wish.streams);
    case OPT_CLEAN:
        status = take_yes_no(c, option, &clean);
        c->keep_failed = !clean;
        return status;
    default:
        return take_bound(c, option);
    }
}

int conversation_parse(struct conversation *c, const char *verb, int argc, char **argv,
                       const struct option *own, int (*take)(void *ctx, int option), void *ctx)
{
    struct option all[N_OPTIONS_MAX] = {0};
    unsigned n = 0;
    int option;

    for (unsigned i = 0; common[i].name; i++)
        all[n++] = common[i];
    for (unsigned i = 0; own && own[i].name && n + 1 < N_OPTIONS_MAX; i++)
        all[n++] = own[i];
    options_init(&c->options, verb);
    agent_bounds_default(&c->bounds);
    c->export.fd = c->transcript.fd = -1;
    c->options.takes_json = c->options.takes_environment = c->options.takes_summary = true;
    c->options.takes_limits = c->options.takes_server = c->options.takes_checkpoints = true;
    while ((option = options_next(&c->options, argc, argv, "f:o:q", all)) != -1) {
        if (option == OPTIONS_WRONG)
            return EXIT_USAGE;
        bool shared = option < 256 || (option >= OPT_MODEL && option < OPT_LAST);
        int status = shared ? take_common(c, option) : take(ctx, option);
        if (status != 0)
            return status;
    }
    return 0;
}

static int complain(const struct conversation *c, const struct err *e)
{
    fprintf(stderr, "retort: %s: %s\n", c->options.verb, e->text);
    return EXIT_USAGE;
}

int conversation_prepare(struct conversation *c)
{
    struct err e;

    if (uploads_open(&c->uploads, &e) < 0 || place_find(&c->place, &c->options, IDLE_S, &e) < 0)
        return complain(c, &e);
    if (c->out_dir && export_open(&c->export, c->out_dir, c->options.limits.disk, &e) < 0)
        return complain(c, &e);
    if (c->save || c->verify)
        c->notebook = notebook_new();
    return 0;
}

/* ---- between the agent and who looks on ---- */

static void note(const struct conversation *c, const char *sentence)
{
    c->view->note(c->view->ctx, sentence);
}

static void record(struct conversation *c, const struct cell *cell)
{
    json_t *j = cell_json(cell, c->options.summary);
    struct err e;

    if (notebook_add_cell(c->notebook, j, cell->undone, &e) < 0) {
        c->failed = true;
        note(c, e.text);
    }
    if (c->verify)
        json_array_append_new(c->cells, notebook_code_json(j, cell->undone));
    json_decref(j);
}

/* What a cell made, for -o. What it did to files is undone with it. */
static void save_results(struct conversation *c, const struct cell *cell)
{
    for (unsigned i = 0; i < cell->n_outputs; i++)
        if (cell->outputs[i].n_parts > 0)
            c->saver.view.display(c->saver.view.ctx, &cell->outputs[i]);
    show_files(&c->saver, &c->guest, cell);
}

static void on_ran(void *ctx, const struct cell *cell)
{
    struct conversation *c = ctx;

    if (!cell->undone)
        save_results(c, cell);
    if (c->notebook)
        record(c, cell);
}

static void on_added(void *ctx, const json_t *message)
{
    struct conversation *c = ctx;

    if (!transcript_add(&c->transcript, message))
        note(c, "the transcript cannot be written any more: is the disk full?");
}

static void tell_line(void *ctx, const char *event, json_t *data)
{
    struct conversation *c = ctx;
    json_t *j = json_pack("{s:s,s:o}", "event", event, "data", data);
    char *text = json_dumps(j, CELL_JSON_FLAGS);

    assert_that(text);
    outlet_line(&c->owner.out, 1, text);
    free(text);
    json_decref(j);
}

static void open_view(struct conversation *c)
{
    if (c->options.json) {
        telling_init(&c->telling, tell_line, c, c->options.summary);
        c->view = &c->telling.view;
    } else {
        c->stage = stage_new(&c->owner.out, c->quiet);
        c->view = stage_view(c->stage);
    }
}

/* ---- starting ---- */

static int find_model(struct conversation *c, struct err *e)
{
    cleanup_buf struct buf notes = {0};

    if (model_find(&c->wish, &c->model, &notes, e) < 0)
        return -1;
    for (char *rest = buf_text(&notes), *line; (line = strsep(&rest, "\n"));)
        if (*line)
            outlet_note(&c->owner.out, "%s", line);
    c->client = model_client(&c->model, e);
    return c->client ? 0 : -1;
}

static json_t *about(const struct conversation *c)
{
    cleanup_free char *title = model_title(&c->model);
    json_t *files = json_array();
    char now[CLOCK_TEXT];

    for (unsigned i = 0; i < c->uploads.n; i++) {
        cleanup_free char *path = realpath(c->uploads.list[i].path, NULL);
        json_array_append_new(files, json_pack("{s:s,s:s}", "name", c->uploads.list[i].name, "path",
                                               path ? path : c->uploads.list[i].path));
    }
    return json_pack("{s:i,s:s,s:s,s:o}", "retort", 1, "created_at",
                     clock_text(clock_wall_ms(), now), "model", title, "files", files);
}

static int open_box(struct conversation *c, struct err *e)
{
    int turn = guest_open(&c->guest, &c->owner, &c->options.limits, NULL, e);

    if (turn != 0)
        return turn;
    export_bound(&c->export, c->guest.limits.disk);
    return uploads_put(&c->uploads, &c->guest, e);
}

static void open_agent(struct conversation *c, char *environment)
{
    const struct agent_options o = {.owner = &c->owner,
                                    .guest = &c->guest,
                                    .client = c->client,
                                    .model = &c->model,
                                    .view = c->view,
                                    .bounds = c->bounds,
                                    .clean_retries = !c->keep_failed && c->options.checkpoints != 0,
                                    .summary = c->options.summary,
                                    .environment = environment,
                                    .added = on_added,
                                    .ran = on_ran,
                                    .ctx = c};

    c->agent = agent_new(&o);
}

/* Who runs the notebook again needs to know. */
static void describe_notebook(struct conversation *c)
{
    cleanup_free char *title = model_title(&c->model);

    notebook_set(c->notebook, "model", cell_text_json(title, strlen(title)));
    notebook_set(c->notebook, "files", uploads_json(&c->uploads));
}

int conversation_start(struct conversation *c, struct err *e)
{
    char *environment = NULL;
    struct err ignored;

    if (place_start(&c->place, &c->owner, &c->options, e) < 0)
        return -1;
    open_view(c);
    show_init(&c->saver, &c->owner.out, &c->guest.limits, c->out_dir ? &c->export : NULL, true);
    if (find_model(c, e) < 0)
        return -1;
    if (c->notebook)
        describe_notebook(c);
    int turn = open_box(c, e);
    if (turn == 0)
        turn = guest_describe(&c->guest, &environment, e);
    if (turn != 0)
        return turn;
    open_agent(c, environment);
    c->cells = json_array();
    if (c->transcript.fd < 0 && transcript_begin(&c->transcript, about(c), &ignored) < 0)
        note(c, ignored.text); /* an answer without a transcript is better than none */
    return 0;
}

/* ---- an earlier one ---- */

int conversation_continue(struct conversation *c, const char *path, json_t **ret_talk,
                          struct err *e)
{
    json_t *was, *file;
    size_t i;

    if (transcript_continue(&c->transcript, path, &was, ret_talk, e) < 0)
        return -1;
    json_array_foreach(json_object_get(was, "files"), i, file)
    {
        const char *name = json_string_value(json_object_get(file, "name"));
        const char *from = json_string_value(json_object_get(file, "path"));
        if (!name || !from || uploads_add_named(&c->uploads, name, from) < 0) {
            json_decref(was);
            return err_set(e, 0, "the transcript names a file that cannot be one");
        }
    }
    json_decref(was);
    return 0;
}

/* The code of a call that ran well, by its result's place. */
static char *good_code(const json_t *call, const json_t *result)
{
    const char *arguments = json_string_value(json_object_get(call, "arguments"));
    struct err ignored;

    if (!arguments || json_is_true(json_object_get(result, "failed")))
        return NULL;
    return call_code(arguments, strlen(arguments), &ignored);
}

static int replay_cell(struct conversation *c, const char *code, struct err *e)
{
    struct cell *cell;

    if (guest_ask(&c->guest, code, &cell, e) < 0)
        return e->code == EINTR ? TURN_SIGINT : -1;
    if (cell->status != CELL_OK)
        note(c, "a cell that ran well before does not now: some variables may be missing");
    cell_free(cell);
    return 0;
}

int conversation_replay(struct conversation *c, const json_t *talk, struct err *e)
{
    int turn = agent_resume(c->agent, talk, e);

    for (size_t i = 1; turn == 0 && i < json_array_size(talk); i++) {
        const json_t *calls = json_object_get(json_array_get(talk, i - 1), "calls"), *call;
        const json_t *results = json_object_get(json_array_get(talk, i), "results");
        size_t k;
        json_array_foreach(calls, k, call)
        {
            cleanup_free char *code = good_code(call, json_array_get(results, k));
            if (code && turn == 0)
                turn = replay_cell(c, code, e);
        }
    }
    return turn;
}

/* ---- a question ---- */

/* Where it is not an answer, the text is what the model said last: a person who looks on has seen it. */
static void show_answer(struct conversation *c, const struct agent_answer *a)
{
    bool seen = a->end != AGENT_ANSWERED && !c->quiet && c->owner.out.tty[1];

    if (c->options.json) {
        tell_line(c, "answer", answer_json(a));
        return;
    }
    stage_answer(c->stage, seen ? "" : a->text);
    if (a->why)
        note(c, a->why);
}

static void save(struct conversation *c, const struct agent_answer *a)
{
    struct err e;

    if (!c->notebook)
        return;
    if ((a->text[0] && notebook_add_markdown(c->notebook, NOTEBOOK_ANSWER, a->text, &e) < 0) ||
        (c->save && notebook_write(c->notebook, c->save, &e) < 0)) {
        c->failed = true;
        note(c, e.text);
    }
}

int conversation_ask(struct conversation *c, const char *question, struct agent_answer *ret,
                     struct err *e)
{
    struct err why;

    if (c->notebook && question &&
        notebook_add_markdown(c->notebook, NOTEBOOK_QUESTION, question, &why) < 0)
        note(c, why.text);
    int turn = agent_answer(c->agent, question, ret, e);
    if (turn == 0) {
        show_answer(c, ret);
        save(c, ret);
    }
    c->failed = c->failed || c->saver.failed;
    return turn;
}

static void show_checked(void *ctx, const json_t *cell)
{
    struct conversation *c = ctx;

    if (!c->options.json && !c->quiet)
        recheck_show_cell(&c->owner.out, 2, cell);
}

/* The first box goes before the second comes, so that both fit where only one does. */
int conversation_verify(struct conversation *c, const char *question, const struct agent_answer *a,
                        struct err *e)
{
    json_t *answers = json_pack("[o]", cell_text_json(a->text, strlen(a->text)));
    json_t *given = json_pack("[o]", cell_text_json(question, strlen(question)));
    json_t *report = NULL;
    const struct recheck r = {.owner = &c->owner,
                              .limits = &c->options.limits,
                              .uploads = &c->uploads,
                              .cells = c->cells,
                              .answers = answers,
                              .given = given,
                              .cell = show_checked,
                              .ctx = c};

    guest_close(&c->guest);
    int turn = recheck(&r, &report, e);
    if (turn == 0 && c->options.json)
        tell_line(c, "verified", json_incref(report));
    else if (turn == 0)
        recheck_show_end(&c->owner.out, 2, report);
    bool good = json_is_true(json_object_get(report, "verified"));
    json_decref(answers);
    json_decref(given);
    json_decref(report);
    return turn < 0 ? -1 : turn > 0 ? conversation_turn_status(turn) : good ? 0 : EXIT_RAISED;
}

int conversation_turn_status(int turn)
{
    return turn & TURN_STOP ? EXIT_TERMINATED : turn & TURN_CLOSED ? EXIT_PIPE : EXIT_INTERRUPTED;
}

int conversation_status(const struct conversation *c, const struct agent_answer *a)
{
    if (c->failed)
        return EXIT_RETORT_FAILED;
    switch (a->end) {
    case AGENT_ANSWERED:
        return EXIT_RAN;
    case AGENT_STOPPED:
        return EXIT_INTERRUPTED;
    case AGENT_BOUND:
    case AGENT_REFUSED:
        break;
    }
    return EXIT_RAISED;
}

/* ---- the end ---- */

void conversation_stop(struct conversation *c)
{
    agent_free(c->agent);
    c->agent = NULL;
    guest_close(&c->guest);
    if (c->client)
        client_free(c->client);
    c->client = NULL;
    if (c->stage)
        stage_free(c->stage);
    c->stage = NULL;
    owner_stop(&c->owner);
}

void conversation_done(struct conversation *c)
{
    model_done(&c->model);
    transcript_done(&c->transcript);
    notebook_free(c->notebook);
    json_decref(c->cells);
    uploads_done(&c->uploads);
    export_close(&c->export);
    place_done(&c->place);
}
