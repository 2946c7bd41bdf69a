/* options: the command line of a verb.
 *
 * Every verb understands --help. It says which of the others that several verbs share mean something to it: the
 * rest it does not know. What else it takes it says in a table of its own. Mistakes are told in a sentence that names
 * the verb, and end in exit status 2. An option of the verb's own takes the place of a limit of the same name.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>

#include "base/limits.h"

struct options {
    const char *verb;
    /* Which options the verb takes: set them after options_init. */
    bool takes_json;
    bool takes_environment; /* and --wheels */
    bool takes_limits;
    bool takes_checkpoints;
    bool takes_summary;
    bool takes_server; /* and --token-file */
    /* What was given. */
    bool json;
    bool help;
    char *server;
    const char *token_file;
    const char *environment; /* a name or a path; "default" when not given */
    bool environment_given;
    const char *wheels; /* NULL: not given */
    struct limits limits;
    int checkpoints;       /* -1: not given */
    unsigned summary;      /* bytes */
    unsigned limits_given; /* bits, in the order of limits_name */
};

void options_init(struct options *o, const char *verb);

/* The next of the verb's own options: its value from the table (the argument is in optarg), -1 when
 * there are no more (operands start at optind), or OPTIONS_WRONG after a message on stderr. `own`
 * ends with a zeroed entry; `shorts` has the short ones without a leading ':' or '+'. */
#define OPTIONS_WRONG '?'
int options_next(struct options *o, int argc, char **argv, const char *shorts,
                 const struct option *own);

/* The server, for --help. */
#define OPTIONS_SERVER_HELP                                                                        \
    "  --server URL        on a server: the link that \"retort serve\" prints, or its\n"           \
    "                      address and the token by --token-file F or RETORT_TOKEN\n"

/* The limits, for --help; and for a verb whose --files is another one. */
#define OPTIONS_LIMITS_HELP_WITH(files)                                                            \
    "Limits (\"none\" lifts one; sizes take k, m, g):\n"                                           \
    "  --timeout SECONDS   wall time of one cell            [60]\n"                                \
    "  --cpu SECONDS       CPU time of one cell             [none]\n"                              \
    "  --memory SIZE       everything in the box together   [1g]\n"                                \
    "  --disk SIZE         bytes in the workspace           [512m]\n" files                        \
    "  --pids N            processes and threads            [64]\n"                                \
    "  --output SIZE       text kept of one cell            [1m]\n"                                \
    "  --cpus N            share of cores                   [1]\n"
#define OPTIONS_LIMITS_HELP                                                                        \
    OPTIONS_LIMITS_HELP_WITH("  --files N           files in the workspace           [10000]\n")
