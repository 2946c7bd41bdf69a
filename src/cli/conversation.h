/* conversation: what ask and chat have in common: a model, a box, and somebody who looks on.
 *
 *     parse ─▶ keeper ─▶ the model, with its key ─▶ box, files ─▶ questions ─▶ files out, the notebook
 *
 * The keeper is started before the key is read: everything below the keeper is a clone of us, and nothing there is
 * to have it.
 */
#pragma once

#include <getopt.h>

#include "agent/agent.h"
#include "agent/find.h"
#include "agent/telling.h"
#include "agent/transcript.h"
#include "cli/export.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/show.h"
#include "cli/stage.h"
#include "cli/uploads.h"
#include "guest/guest.h"
#include "session/notebook_file.h"

struct conversation {
    /* the command line */
    struct options options;
    struct model_wish wish;
    struct agent_bounds bounds;
    bool keep_failed; /* a cell that fails is not undone */
    bool quiet, verify;
    const char *out_dir, *save;
    struct uploads uploads;
    struct export export;
    struct place place;
    /* the work */
    struct owner owner;
    struct guest guest;
    struct model model;
    struct client *client;
    struct agent *agent;
    struct transcript transcript;
    /* who looks on: one of these */
    struct stage *stage;
    struct telling telling;
    const struct agent_view *view;
    struct show saver; /* of files and figures, for -o */
    /* what was run, for --save and --verify */
    struct notebook *notebook;
    json_t *cells;
    bool failed; /* something could not be saved */
};

/* The options that both have. */
#define CONVERSATION_OPTIONS_HELP                                                                  \
    "  --model P/NAME      anthropic/…, openai/…, gemini/…, ollama/…; --base-url URL\n"    \
    "                      is another server; docs/MODELS.md has keys and files\n"                 \
    "  -f FILE, -f N=FILE  copy a file into the workspace, under the name N (repeat)\n"            \
    "  -o DIR              copy new and changed files, and figures, to DIR\n"

/* Takes them; a verb's own come in `own` (values above 255), and are given to `take`. 0 with operands from
 * optind on, or EXIT_USAGE. */
int conversation_parse(struct conversation *c, const char *verb, int argc, char **argv,
                       const struct option *own, int (*take)(void *ctx, int option), void *ctx);
/* What can be found wrong before anything is started. */
int conversation_prepare(struct conversation *c);

/* From here on conversation_stop must be called. 0; a set of enum turn; or -1. */
int conversation_start(struct conversation *c, struct err *e);
/* Go on with an earlier one: the newest, or that file. Between parse and start. */
int conversation_continue(struct conversation *c, const char *path, json_t **ret_talk,
                          struct err *e);
/* Make the box what it was: run what ran well before. 0; a set of enum turn; or -1. */
int conversation_replay(struct conversation *c, const json_t *talk, struct err *e);

/* One question (NULL: the one that is open), with everything that is shown and saved. 0 and the answer's end is in
 * `ret`; a set of enum turn; or -1 where retort or the model failed. */
int conversation_ask(struct conversation *c, const char *question, struct agent_answer *ret,
                     struct err *e);
/* Run what was run once more in a fresh box, and say what came out the same and which numbers of the answer stand in no
 * output. 0: all is well; EXIT_RAISED: not; another exit status; or -1. */
int conversation_verify(struct conversation *c, const char *question, const struct agent_answer *a,
                        struct err *e);
/* An exit status. */
int conversation_status(const struct conversation *c, const struct agent_answer *a);
int conversation_turn_status(int turn);
void conversation_stop(struct conversation *c);
void conversation_done(struct conversation *c);
