/* main: the table of verbs. */
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/cli.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
    const char *what;
} verbs[] = {
    {"run", verb_run, run_help, "run one program in a fresh box"},
    {"repl", verb_repl, repl_help, "an interactive session in a box"},
    {"verify", verb_verify, verify_help, "run a notebook again and compare"},
    {"serve", verb_serve, serve_help, "sessions, cells and files over HTTP"},
    {"mcp", verb_mcp, mcp_help, "the same for an agent, on standard input and output"},
    {"ask", verb_ask, ask_help, "a model answers a question by running code"},
    {"chat", verb_chat, chat_help, "the same as a conversation"},
    {"doctor", verb_doctor, doctor_help, "try every layer of isolation on this host"},
    {"token", verb_token, token_help, "make, list and revoke tokens of the server"},
    {"env", verb_env, env_help, "what is in an environment, with versions"},
};
#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

int usage_error(const char *verb, const char *fmt, ...)
{
    va_list ap;

    fputs("retort: ", stderr);
    if (verb)
        fprintf(stderr, "%s: ", verb);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nTry \"retort %s%s--help\".\n", verb ? verb : "", verb ? " " : "");
    return EXIT_USAGE;
}

static void help(FILE *to)
{
    fputs("usage: retort VERB [OPTION]…\n\n"
          "Runs the code that a language model writes, in a sealed vessel.\n\n",
          to);
    for (unsigned i = 0; i < N_VERBS; i++)
        fprintf(to, "  retort %-8s %s\n", verbs[i].name, verbs[i].what);
    fputs("\n"
          "  retort VERB --help    one screen about a verb; the man pages say the rest\n"
          "  retort --version      which retort this is\n\n"
          "For example:\n"
          "  retort run -c 'print(6 * 7)'\n"
          "  retort run -f sales.csv -o out analyse.py\n",
          to);
}

static int find_verb(const char *name)
{
    for (unsigned i = 0; i < N_VERBS; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

static int unknown_verb(const char *word)
{
    const char *best = NULL;
    unsigned distance = 0;

    if (word[0] == '-')
        return usage_error(NULL, "unknown option %s: a verb comes first, as in \"retort run %s\"",
                           word, word);
    for (unsigned i = 0; i < N_VERBS; i++)
        suggest_offer(word, verbs[i].name, &best, &distance);
    if (best)
        return usage_error(NULL, "there is no verb \"%s\" (did you mean \"%s\"?)", word, best);
    if (strstr(word, ".py"))
        return usage_error(NULL, "there is no verb \"%s\" (did you mean \"run %s\"?)", word, word);
    return usage_error(NULL, "there is no verb \"%s\"", word);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        return puts("retort " RETORT_VERSION) < 0 ? EXIT_RETORT_FAILED : 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        int of = argc > 2 ? find_verb(argv[2]) : -1;
        if (argc > 2 && of < 0)
            return unknown_verb(argv[2]);
        if (of >= 0)
            fputs(verbs[of].help, stdout);
        else
            help(stdout);
        return 0;
    }
    int verb = find_verb(word);
    return verb < 0 ? unknown_verb(word) : verbs[verb].run(argc - 1, argv + 1);
}
