/* cli: what all the verbs share. One file is one verb; main.c has the table of them.
 *
 * The CLI is an ordinary process of the person who typed it. It owns the sessions (see
 * session/session.h), and everything a box sends ends here: text for a terminal, pictures, files.
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
int verb_doctor(int argc, char **argv);
int verb_token(int argc, char **argv);

extern const char run_help[];
extern const char repl_help[];
extern const char serve_help[];
extern const char doctor_help[];
extern const char token_help[];

/* Say on stderr what is wrong with the command line, and where help is. Returns EXIT_USAGE. */
int usage_error(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
