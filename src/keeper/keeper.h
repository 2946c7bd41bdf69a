/* keeper: starting the privileged process. Called by the process that will own the sessions; the keeper itself is a
 * program of its own (main.c). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/limits.h"

#define ENVIRONMENT_PATHS 16

/* An environment: any CPython ≥ 3.10 and what it needs to see. */
struct environment {
    char *name;
    char *python;                       /* absolute path of the interpreter */
    char *paths[ENVIRONMENT_PATHS + 1]; /* read-only directories besides /usr, NULL-terminated */
    char *preload;                      /* modules to import beforehand, by blanks; may be "" */
    char *wheels; /* the directory that boxes see as ROOT_WHEELS, read-only; or NULL */
};

/* Two uids of the keeper's 65536 are a box's. */
#define KEEPER_MAX_BOXES 32000u

struct keeper_options {
    const struct environment *environments;
    unsigned n_environments;
    struct limits limits; /* what ready boxes are made for */
    unsigned boxes;       /* how many there may be at once, ready and ending ones too; 0: 1000 */
    unsigned pool;        /* ready boxes kept per environment; 0: none */
    unsigned patience_ms; /* with a zygote that does not answer; 0: half a minute */
    unsigned blanks; /* and boxes that lack only their Python: cheaper, for when those run out */
    bool few;        /* only a few will be made: zygotes are not prepared for many forks */
};

/* What this host lets us enforce, found out by doing it. */
struct keeper_facts {
    bool root;               /* real root: a host uid of its own for each box */
    int cgroup_version;      /* 1, 2, or 0 where cgroups cannot be had */
    char cgroup_reason[256]; /* why not, and what to do about it; "" with cgroups */
    int landlock_abi;        /* 0: the kernel has none */
};

struct keeper {
    pid_t pid;
    int pidfd;
    pid_t program; /* our child, which has started it and clears up after it */
    int fd;        /* the socket for vessel_new, which takes it over */
    struct keeper_facts facts;
    void *ground; /* what keeper_stop removes */
};

/* Start a keeper. On return it stands, and its zygotes are being warmed. */
int keeper_start(const struct keeper_options *o, struct keeper *ret, struct err *e);

/* End it and wait until nothing is left. Its socket must be closed by then (vessel_free). */
void keeper_stop(struct keeper *k);
