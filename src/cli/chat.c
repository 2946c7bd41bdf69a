/* chat: a conversation: question after question, in one box. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/conversation.h"
#include "cli/failed.h"
#include "cli/input.h"

const char chat_help[] =
    "usage: retort chat [OPTION]…\n"
    "\n"
    "A conversation with a model that runs Python in a sealed box: variables and\n"
    "files stay from one question to the next. Ctrl-C interrupts the cell, twice\n"
    "the answer; Ctrl-D leaves. \"/file PATH\" copies one more file into the workspace.\n"
    "\n" CONVERSATION_OPTIONS_HELP
    "  --continue[=FILE]   go on with the last conversation, or that transcript: its\n"
    "                      cells run again, and an open question is answered\n"
    "  --save FILE.ipynb   the conversation as a notebook, after each answer\n"
    "  --quiet             the answers alone; --json: events, a line each\n"
    "  --attempts N        cells that may fail in a row [5]; --max-cells N [50],\n"
    "                      --max-time T [10m], --max-tokens N, --max-cost C; these\n"
    "                      are for one question\n"
    "  --clean-retries no  keep what a cell did that failed\n" OPTIONS_SERVER_HELP "\n"
    "Limits, --environment, --summary as in \"retort run\".\n";

enum { OPT_CONTINUE = 500 };

struct chat {
    struct conversation c;
    bool goes_on;
    const char *transcript; /* NULL: the newest */
    json_t *talk;           /* the earlier one */
};

static int take(void *ctx, int option)
{
    struct chat *chat = ctx;

    if (option == OPT_CONTINUE) {
        chat->goes_on = true;
        chat->transcript = optarg;
    }
    return 0;
}

/* ---- lines ---- */

static const char *after_word(const char *line, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(line, word, len) != 0 || (line[len] != ' ' && line[len] != '\0'))
        return NULL;
    return line + len + strspn(line + len, " ");
}

/* One more file. 0; a set of enum turn; or -1. What is wrong with it is said. */
static int add_file(struct chat *chat, const char *path, struct err *e)
{
    struct conversation *c = &chat->c;
    struct uploads one = {0};
    cleanup_free char *arg = xstrdup(path);

    if (uploads_add(&one, "chat", arg) != 0)
        return 0;
    int turn = uploads_open(&one, e);
    if (turn == 0)
        turn = uploads_put(&one, &c->guest, e);
    if (turn == 0) {
        agent_look_again(c->agent);
        outlet_note(&c->owner.out, "%s is in the workspace", one.list[0].name);
    } else if (turn < 0 && !c->owner.lost)
        outlet_note(&c->owner.out, "%s", e->text);
    uploads_done(&one);
    return turn < 0 && !c->owner.lost ? 0 : turn;
}

/* 0; a set of enum turn; or -1. A model that cannot be reached now may be later. */
static int ask(struct chat *chat, const char *question, struct err *e)
{
    struct conversation *c = &chat->c;
    struct agent_answer answer = {0};
    int turn = conversation_ask(c, question, &answer, e);

    agent_answer_done(&answer);
    if (turn < 0 && !c->owner.lost && !guest_ended(&c->guest)) {
        outlet_note(&c->owner.out, "%s", e->text);
        return 0;
    }
    return turn;
}

static bool is_the_end(const char *line)
{
    return strcmp(line, "/quit") == 0 || strcmp(line, "/exit") == 0;
}

static bool is_question(const char *line)
{
    return line[strspn(line, " \t")] && !after_word(line, "/file") && !is_the_end(line);
}

/* 0; a set of enum turn; or -1. */
static int take_line(struct chat *chat, const char *line, struct err *e)
{
    const char *path = after_word(line, "/file");

    if (is_question(line))
        return ask(chat, line, e);
    if (path)
        return add_file(chat, path, e);
    return is_the_end(line) ? TURN_STOP : 0;
}

/* An empty line between what a person typed and what is shown, above and below. */
static void space(struct chat *chat, const struct input *in)
{
    if (input_is_terminal(in) && !chat->c.options.json && !chat->c.quiet)
        outlet_say(&chat->c.owner.out, 1, "\n");
}

static int converse(struct chat *chat, struct input *in, struct err *e)
{
    for (;;) {
        cleanup_buf struct buf line = {0};
        switch (input_line(in, "» ", "", &line, e)) {
        case INPUT_LINE:
            break;
        case INPUT_INTERRUPTED:
            continue;
        case INPUT_END:
            return 0;
        case INPUT_STOP:
            return TURN_STOP;
        case INPUT_FAILED:
            return -1;
        }
        bool question = is_question(buf_text(&line));
        if (question)
            space(chat, in);
        int turn = take_line(chat, buf_text(&line), e);
        if (turn != 0)
            return turn;
        if (question)
            space(chat, in);
    }
}

/* ---- the verb ---- */

static void banner(struct chat *chat, const struct input *in)
{
    struct conversation *c = &chat->c;
    cleanup_free char *title = model_title(&c->model);

    if (input_is_terminal(in) && !c->options.json)
        outlet_say(&c->owner.out, 1,
                   "retort " RETORT_VERSION ": %s, with Python in a sealed box\n"
                   "Ctrl-C interrupts, Ctrl-D leaves, /file PATH adds a file\n\n",
                   title);
}

static int chat_in_box(struct chat *chat, struct err *e)
{
    struct input *in = input_new(&chat->c.owner);
    int turn = 0;

    banner(chat, in);
    if (chat->talk) {
        outlet_note(&chat->c.owner.out, "going on: the cells of before run again");
        turn = conversation_replay(&chat->c, chat->talk, e);
        if (turn == 0 && agent_is_asked(chat->c.agent))
            turn = ask(chat, NULL, e);
    }
    if (turn == 0)
        turn = converse(chat, in, e);
    input_free(in);
    return turn;
}

static int run(struct chat *chat)
{
    struct conversation *c = &chat->c;
    struct err e;
    int turn = conversation_start(c, &e);

    if (turn == 0)
        turn = chat_in_box(chat, &e);
    bool failed = c->failed;
    conversation_stop(c);
    if (turn < 0)
        return owner_failed(&e);
    /* To leave by a signal is an end like another here, unless it was one of the terminal's. */
    return turn > 0 && turn != TURN_STOP ? conversation_turn_status(turn)
           : failed                      ? EXIT_RETORT_FAILED
                                         : EXIT_RAN;
}

int verb_chat(int argc, char **argv)
{
    static const struct option own[] = {{"continue", optional_argument, NULL, OPT_CONTINUE}, {0}};
    static struct chat chat;
    struct conversation *c = &chat.c;
    struct err e;
    int status = conversation_parse(c, "chat", argc, argv, own, take, &chat);

    if (status == 0 && c->options.help) {
        fputs(chat_help, stdout);
        return 0;
    }
    if (status == 0 && optind < argc)
        status = usage_error("chat",
                             "\"%s\" is not understood: questions are typed (\"retort ask\" "
                             "takes one as its argument)",
                             argv[optind]);
    if (status == 0 && c->verify)
        status =
            usage_error("chat", "--verify is for \"retort ask\"; \"retort verify\" checks what "
                                "--save has written");
    if (status == 0 && chat.goes_on &&
        conversation_continue(c, chat.transcript, &chat.talk, &e) < 0) {
        fprintf(stderr, "retort: chat: %s\n", e.text);
        status = EXIT_USAGE;
    }
    if (status == 0)
        status = conversation_prepare(c);
    if (status == 0)
        status = run(&chat);
    json_decref(chat.talk);
    conversation_done(c);
    return status;
}
