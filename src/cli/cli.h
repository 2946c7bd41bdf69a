/* cli: what all the verbs share.
 *
 *   main.c          the table of verbs
 *   run.c           the verbs, a file each
 *   repl.c          … and repl_json.c, for a program instead of a person
 *   serve.c
 *   mcp.c           … and keeping.c, what both need of a keeper
 *   doctor.c        … and trials.c, what it does inside boxes
 *   ask.c, chat.c   … and conversation.c, what they have in common
 *   token.c
 *   env.c
 *   verify.c        … and recheck.c, a notebook's cells once more
 *
 *   options.c       the command line of a verb
 *   environment.c   from --environment to an interpreter
 *   program.c       the text to run
 *   uploads.c       the files of -f
 *   place.c         where the boxes are: on this host, or on a server
 *   failed.c        what is said where retort itself failed, or was stopped
 *
 *   input.c         lines for the repl
 *   show.c          a cell for a person
 *   stage.c         an agent's work for a person
 *   export.c        what a guest made, into a directory of the user's
 *
 * The CLI is an ordinary process of the person who typed it. It owns the sessions (see guest/guest.h), and
 * everything a box sends ends here: text for a terminal, pictures, files.
 */
#pragma once

/* The exit statuses of the contract. Others come from the program that ran. */
enum exit_status {
    EXIT_RAN = 0,
    EXIT_RAISED = 1,
    EXIT_USAGE = 2,
    EXIT_TIME = 124,
    EXIT_RETORT_FAILED = 125,
    EXIT_INTERRUPTED = 130,
    EXIT_MEMORY = 137,
    EXIT_PIPE = 141,
    EXIT_TERMINATED = 143,
};

int verb_run(int argc, char **argv);
int verb_repl(int argc, char **argv);
int verb_serve(int argc, char **argv);
int verb_mcp(int argc, char **argv);
int verb_ask(int argc, char **argv);
int verb_chat(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_token(int argc, char **argv);
int verb_env(int argc, char **argv);
int verb_verify(int argc, char **argv);

extern const char run_help[];
extern const char repl_help[];
extern const char serve_help[];
extern const char mcp_help[];
extern const char ask_help[];
extern const char chat_help[];
extern const char doctor_help[];
extern const char token_help[];
extern const char env_help[];
extern const char verify_help[];

/* Say on stderr what is wrong with the command line, and where help is. Returns EXIT_USAGE. */
int usage_error(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
