/* config: the server's settings: a file of "key = value", and the same keys from the command line.
 *
 * '#' begins a comment at the start of a line or after a blank. Unknown keys are errors that name the
 * line and the nearest known key. Limits have the contract's names; "max_" before one is the most that a
 * client may ask for. "none" lifts what can be lifted; 0 never does. etc/retort.conf shows all of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"

#define CONFIG_LIST 16

struct config {
    char *listen; /* listen = 127.0.0.1:8722; "[::1]:0"; port 0 takes a free one */
    char *state;  /* state = /var/lib/retort; NULL: the default of whoever starts it */
    char *user;   /* user = retort; whom a server started by root becomes; NULL: see confine_user */
    /* preload = numpy pandas; modules to import beforehand, "none"; NULL: the usual */
    char *preload;
    char *wheels;       /* wheels = /srv/wheels; for environments that name none; NULL: none */
    char *model;        /* model = anthropic/NAME; NULL: nobody can ask */
    char *model_config; /* model_config = FILE; see agent/find.h; NULL: the environment alone */
    /* These end with NULL. */
    char *hosts[CONFIG_LIST + 1];   /* hosts = name name…; further names in "Host:" */
    char *origins[CONFIG_LIST + 1]; /* origins = https://… …; pages that may call us */
    char
        *environments[CONFIG_LIST + 1]; /* environments = default name…; the first is the default */

    struct limits limits; /* timeout, cpu, memory, … for sessions that do not say */
    struct limits max;    /* max_timeout, … */
    unsigned
        checkpoints; /* checkpoints = 8; states of a session that are kept, if it does not say */
    double idle_timeout_s; /* idle_timeout = 1200; "none" is infinite */
    double retention_s;    /* retention = 7d; the journal of ended sessions; "none" is infinite */
    double ask_time_s;     /* ask_time = 10m; that one question may take; "none" is infinite */
    double drain_s;        /* drain = 30; what running cells get when the server is told to stop */

    unsigned max_sessions;    /* max_sessions = 256; all tokens together */
    unsigned summary;         /* summary = 8k; bytes of a cell's summary, if it does not say */
    unsigned max_queue;       /* max_queue = 16; cells that wait in one session */
    unsigned max_runs;        /* max_runs = 16; one-shot runs at once, others wait */
    unsigned max_waiting;     /* max_waiting = 256; one-shot runs that wait */
    unsigned max_asks;        /* max_asks = 8; questions at once */
    unsigned ask_cells;       /* ask_cells = 50; that one question may run */
    unsigned ask_tokens;      /* ask_tokens = 1000000; that it may cost */
    unsigned max_connections; /* max_connections = 4096 */
    uint64_t max_buffers;  /* max_buffers = 1g; for requests and answers under way; or LIMIT_NONE */
    unsigned pool, blanks; /* pool = 4, blanks = 4 */
    uint64_t journal_outputs; /* journal_outputs = 4m; of one cell, in the journal; or LIMIT_NONE */
    uint64_t journal_session; /* journal_session = 256m; of one session; or LIMIT_NONE */
    bool log_requests;        /* log_requests = yes */
};

void config_default(struct config *ret);
void config_done(struct config *c);
/* One by its name. On failure nothing changes, and the error begins with the key. */
int config_set(struct config *c, const char *key, const char *value, struct err *e);
/* All that the file says; a key may be there once. On failure some of it may be set; the error begins with
 * "path:line". */
int config_load(struct config *c, const char *path, struct err *e);
/* When all is set: does it fit together? What sessions get unasked must be within what they may ask for. */
int config_check(const struct config *c, struct err *e);
/* Walk over the keys: NULL after the last. */
const char *config_key(unsigned i);

/* "20", "1.5", "90s", "20m", "2h", "7d", "none" → seconds, infinite for none. */
int config_parse_seconds(const char *text, double *ret, struct err *e);
