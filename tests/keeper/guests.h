/* guests: several sessions of one keeper at once, and what /proc tells of its processes. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#include "keeper/keeper.h"
#include "session/session.h"

#define PATIENCE_MS 240000 /* an emulated machine is slow */

struct guest {
    struct session *session;
    bool opened, done, ended, failed;
    char answer[1024]; /* the text of the last result, or of what went wrong */
};

extern struct keeper keeper;
extern struct vessel *vessel;
extern struct limits limits;

void guests_open(const struct keeper_options *o);
int guests_close(void **unused);

void wait_until(const bool *flag, const char *what);
void rest(int ms);
/* Open a session; welcome() waits for it. */
void invite(struct guest *g);
void invite_to(struct guest *g, uint32_t environment);
void welcome(struct guest *g);
/* Run a cell; answer() waits for its result. */
void ask(struct guest *g, const char *code);
const char *answer(struct guest *g, const char *code);
void dismiss(struct guest *g);
struct vessel_state state_now(void);

struct process {
    pid_t parent, inner; /* its number with the keeper */
    bool boxed;          /* it has one in a box too */
    char name[32];
};
/* 0: there are no more. */
pid_t next_process(DIR *d, struct process *ret);
/* Children of zygotes, who are the keeper's: in no box's pid namespace. */
unsigned ushers(void);
pid_t one_usher(void);
void signal_ushers(int signal);
void signal_zygote(int signal);
