/* limits: what one session may use, under the names of the contract.
 *
 * The same names serve as flags, configuration keys and JSON members. A limit is a positive number
 * or LIMIT_NONE; 0 is never "unlimited" and is refused.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define LIMIT_NONE UINT64_MAX

/* How many earlier states of a session are kept. No limit, since 0 means that: none. */
#define CHECKPOINTS_DEFAULT 8
#define CHECKPOINTS_MAX 32
/* Bytes of a cell's summary. */
#define SUMMARY_DEFAULT (8u << 10)
#define SUMMARY_MIN 1024
#define SUMMARY_MAX (1u << 20)

struct limits {
    uint64_t timeout_ms; /* wall time of one cell */
    uint64_t cpu_ms;     /* CPU time of one cell, all processes together */
    uint64_t memory;     /* bytes, everything in the box together */
    uint64_t disk;       /* bytes in the workspace */
    uint64_t files;      /* inodes in the workspace */
    uint64_t pids;       /* processes and threads */
    uint64_t output;     /* bytes of text kept for one cell */
    uint64_t cpus_milli; /* thousandths of a core */
};

/* The defaults of the contract. */
void limits_default(struct limits *ret);

/* Set one by its name ("memory", "512m"). Seconds may have a fraction, and take s, m, h, d;
 * sizes take k, m, g, t (1024); "none" lifts the limit. The error says what is accepted. */
int limits_set(struct limits *l, const char *name, const char *value, struct err *e);

/* "20", "1.5", "90s", "20m", "2h", "7d" → seconds. */
int limits_parse_seconds(const char *text, double *ret, struct err *e);
/* "512m" → bytes. */
int limits_parse_size(const char *text, uint64_t *ret, struct err *e);

/* "8" → how many checkpoints are kept. */
int limits_parse_checkpoints(const char *text, unsigned *ret, struct err *e);
/* "8k" → bytes of a summary. */
int limits_parse_summary(const char *text, unsigned *ret, struct err *e);

/* Walk over the names, for help texts and JSON: NULL after the last. */
const char *limits_name(unsigned i);
/* The value of the i-th in the unit a user sees (seconds, bytes, cores); *ret_none when lifted. */
double limits_value(const struct limits *l, unsigned i, int *ret_none);
