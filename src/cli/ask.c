/* ask: one question, answered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/conversation.h"
#include "cli/failed.h"
#include "cli/program.h"

const char ask_help[] =
    "usage: retort ask [OPTION]… QUESTION\n"
    "\n"
    "A model writes Python, retort runs it in a sealed box, the model sees what came\n"
    "out, until the question is answered. \"-\" reads the question from standard input.\n"
    "\n" CONVERSATION_OPTIONS_HELP "  --save FILE.ipynb   the whole conversation as a notebook\n"
    "  --verify            run its cells again afterwards, and check the numbers\n"
    "  --quiet             the answer alone; --json: events, a line each\n"
    "  --attempts N        cells that may fail in a row [5]; --max-cells N [50],\n"
    "                      --max-time T [10m], --max-tokens N, --max-cost C\n"
    "  --clean-retries no  keep what a cell did that failed\n" OPTIONS_SERVER_HELP "\n"
    "Limits, --environment, --summary as in \"retort run\".\n"
    "Exit status: 0 answered, 1 not (or --verify found a difference), 2 wrong usage,\n"
    "125 retort or the model failed, 130 Ctrl-C.\n";

/* The operands together, or what can be read. */
static int read_question(struct buf *ret, int argc, char **argv)
{
    bool piped = optind + 1 == argc && strcmp(argv[optind], "-") == 0;
    struct err e;

    if (optind == argc)
        return usage_error("ask", "what is the question? (\"-\" reads it from standard input)");
    if (piped && program_read("-", ret, &e) < 0) {
        fprintf(stderr, "retort: ask: %s\n", e.text);
        return EXIT_USAGE;
    }
    for (int i = optind; !piped && i < argc; i++)
        buf_add_fmt(ret, "%s%s", i > optind ? " " : "", argv[i]);
    if (ret->len == 0 || strspn(buf_text(ret), " \t\n") == ret->len)
        return usage_error("ask", "the question is empty");
    return 0;
}

static int ask(struct conversation *c, const char *question)
{
    struct agent_answer answer = {0};
    struct err e;
    int turn = conversation_start(c, &e);

    if (turn == 0)
        turn = conversation_ask(c, question, &answer, &e);
    int status = turn > 0   ? conversation_turn_status(turn)
                 : turn < 0 ? -1
                            : conversation_status(c, &answer);
    if (turn == 0 && c->verify) {
        int verified = conversation_verify(c, question, &answer, &e);
        status = verified < 0 ? -1 : verified > 0 && status == 0 ? verified : status;
    }
    agent_answer_done(&answer);
    conversation_stop(c);
    return status < 0 ? owner_failed(&e) : status;
}

int verb_ask(int argc, char **argv)
{
    static struct conversation c;
    cleanup_buf struct buf question = {0};
    int status = conversation_parse(&c, "ask", argc, argv, NULL, NULL, NULL);

    if (status == 0 && c.options.help) {
        fputs(ask_help, stdout);
        return 0;
    }
    if (status == 0)
        status = read_question(&question, argc, argv);
    if (status == 0)
        status = conversation_prepare(&c);
    if (status == 0)
        status = ask(&c, buf_text(&question));
    conversation_done(&c);
    return status;
}
