/* state: what the keeper knows. Private to src/keeper/.
 *
 *   main.c     the program: makes the keeper, and clears up after it
 *   stand.c    what it does until it stands
 *   keeper.c   the loop, the owner's requests, deaths
 *   boxes.c    requests for boxes, handing them over, their end
 *   making.c   a box from its request until it is ready
 *   stock.c    boxes made beforehand
 *   zygotes.c  starting zygotes and asking them for forks
 *   branches.c boxes that begin as another one was
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/limits.h"
#include "box/box.h"
#include "box/cgroup.h"
#include "box/filter.h"
#include "box/root.h"
#include "keeper/launch.h"
#include "wire/msg.h"

struct state;

/* Something to wait for; lies inside the thing that waits. */
struct watch {
    int fd;
    void (*ready)(struct state *s, void *ctx);
    void *ctx;
};

/* The life of a box:
 *
 *     MAKING ──▶ READY ──▶ OUT ──▶ ENDING ──▶ freed
 *      │  ▲        │                 ▲
 *      ▼  │        │                 │
 *     BLANK ───────┴─────────────────┘
 *
 * MAKING: init sets up the root while the zygote forks (or is still warming up); whichever is last
 * lets the kernel process go on. BLANK: init's half stands, and an usher (zygote/between.h) will be asked to fork
 * when a box is wanted. READY: it waits in the pool. OUT: an owner has it. ENDING: init was killed, and with it
 * the pid namespace; freed when init, usher and kernel process are reaped and the zygote has answered. While it
 * has branches, whose namespaces lie in its own, all but init is ended.
 */
enum box_phase { BOX_MAKING, BOX_BLANK, BOX_READY, BOX_OUT, BOX_ENDING };

/* Of a box that is blank, or was (zygote/between.h). What an usher forked is born sealed, waits for no word of ours, and
 * may speak before we know its number. */
enum usher { USHER_NONE, USHER_WAITS, USHER_GONE };

/* The ends of a box's channels that live in it; ours until both halves have theirs. */
struct far_ends {
    int init_setup, kernel_setup, cell_out, cell_in, out, err, files, init_line, kernel_line;
    int handover; /* a branch's init has it, to hear of the files */
};

struct box {
    struct box *next;
    uint32_t id;
    enum box_phase phase;
    struct limits limits;
    struct box_plan plan;
    uint32_t request;           /* of the owner who waits for it */
    bool requested;             /* false: for the pool */
    bool stay_blank;            /* it has no kernel process until box_fill, but an usher */
    bool tell_end;              /* the owner wants to hear that it is gone */
    bool has_cgroup;            /* its cgroup exists */
    bool memory_short;          /* init said so: only where there is no cgroup */
    pid_t init_pid, kernel_pid; /* 0: not there */
    enum usher usher;
    pid_t usher_pid; /* the zygote's child, and ours when that is dead; 0: not there */
    bool init_stands, kernel_stands;
    bool has_files;    /* init knows of some, before any user code has run in the box */
    bool asked_zygote; /* a fork is under way, or an usher comes or goes; the answer will come */
    struct watch init_setup, kernel_setup; /* .fd -1 when closed */
    /* the owner's ends, until they are handed over */
    int cell_out_fd, cell_in_fd, stdout_fd, stderr_fd, files_fd, workspace_fd;
    int meters[CGROUP_METERS];
    unsigned n_meters;
    struct far_ends far;
    int namespaces[BOX_BORN_INTO]; /* until the zygote has them */
    int ways[CGROUP_HIERARCHIES];  /* into the cgroup, as long */
    unsigned n_ways;
    int network_fd; /* init's, until the kernel process has it */
    pid_t waiting
        [BOX_WAITING_MAX +
         1]; /* with the holder of their files: numbers in the box of those that are not the guest's to end */
    unsigned n_waiting;
    int live_fd; /* a kernel process that was one of them: its pidfd and, as we see it, its number */
    pid_t live_pid;
    /* a branch: */
    struct box *parent; /* in whose namespaces it lies; there as long as it is */
    unsigned depth;     /* how many there are above it */
    uint32_t at;        /* the cell after which it was the other */
    pid_t maker_pid;    /* of its init; 0: not there */
    bool given_up;      /* before its init was born */
    int64_t until_ms;   /* by when it has to stand */
    int cgroup_fd;      /* its cgroup namespace, until the kernel process has it */
    unsigned branches;  /* of its own, that are still there */
};

struct zygote {
    struct watch control, log;
    pid_t pid; /* 0: none runs */
    bool warm;
    unsigned started;
    unsigned stillborn;  /* killed one after the other before they were warm */
    int64_t deadline_ms; /* until it is warm, or answers; 0: it owes nothing */
    bool overdue;        /* it was not warm by then, and is not tried again */
    char words[1024];    /* the last that it wrote, for the message when it dies */
    size_t n_words;
};

struct state {
    const struct keeper_options *options;
    struct cgroup_ground cgroups;
    struct root_view view;
    struct filter filter;
    bool own_ids;
    unsigned slots; /* how many boxes there can be */
    bool *slot_used;
    int epoll;
    struct watch owner, signals;
    struct zygote zygotes[ROOT_ENVIRONMENTS];
    struct box *boxes;
    uint32_t last_id;
    int64_t refill_at_ms; /* 0: the stock needs nothing */
    pid_t early[16];      /* children that died before we learned whose they are */
    unsigned n_early;
    struct msg in;
};

/* loop */
int watch_add(struct state *s, struct watch *src, int fd, void (*ready)(struct state *s, void *ctx),
              void *ctx, struct err *e);
void watch_close(struct state *s, struct watch *src);
/* Tell the owner. When it cannot be told it is gone, and so are we. */
void owner_tell(struct state *s, const struct buf *b, const int *fds, unsigned n_fds);

/* boxes */
void box_create(struct state *s, uint32_t request, uint32_t environment, const struct limits *l);
struct box *box_find(struct state *s, uint32_t id);
void box_signal(struct state *s, struct box *b, int signal);
void box_hand_over(struct state *s, struct box *b, bool from_pool);
void box_end(struct state *s, struct box *b);
/* Making it failed: whoever waits hears why. It is ended, and may be gone. */
void box_fail(struct state *s, struct box *b, const char *why);
void box_fail_step(struct state *s, struct box *b, const char *step, const struct err *e);
/* The number of a process as we see it; 0: it is gone. */
pid_t pid_of(int pidfd);
/* The kernel process is another one now, and init's child. */
void box_live(struct box *b, struct msg *m);
/* What init says of a box that is made; -1: nothing that it may say. */
int box_hear(struct state *s, struct box *b, struct msg *m);
/* Tell it to the owner who asked for it. */
void box_tell_failed(struct state *s, uint32_t request, const char *why);
/* The rest of its end, once nothing of it is left. */
void box_free_when_gone(struct state *s, struct box *b);
void box_close_far_ends(struct box *b);
/* A child of ours died; false when it is of no box. */
bool box_child_died(struct state *s, pid_t pid, int status);

/* making */
/* NULL: there are too many. */
struct box *box_new(struct state *s, uint32_t environment, const struct limits *l);
void box_set_limits(struct box *b, const struct limits *l);
/* Begin. Whatever comes of it is told later, or by box_fail. */
void box_make(struct state *s, struct box *b);
/* Give a blank one its Python. */
void box_fill(struct state *s, struct box *b);
/* Is there one? false: or it will say nothing any more. */
bool box_setup_speaks(const struct watch *from);
/* One message of a half; 0: it was a bad one, and the box is ended and may be gone. */
uint32_t box_setup_recv(struct state *s, struct box *b, struct watch *from, const char *half);
/* The zygote has forked for this box. */
void box_answered(struct state *s, uint32_t id, pid_t pid);
/* An usher is there now, or no longer. */
void box_posted(struct state *s, uint32_t id, pid_t usher);
void box_dismissed(struct state *s, uint32_t id);
/* It has not, because. */
void box_refused(struct state *s, uint32_t id, const char *why);
/* Ask for the forks that boxes are waiting for. */
void boxes_ask(struct state *s, unsigned environment);
/* Every fork that was asked of a zygote of this environment will not come. */
void boxes_zygote_lost(struct state *s, unsigned environment, const char *why);
/* Forget deaths that nobody will ask for: with no fork under way, they were of boxes given up. */
void boxes_forget_early(struct state *s);

void box_say_go(struct state *s, struct box *b, int to, const int *fds, unsigned n);
int box_make_channels(struct state *s, struct box *b, struct err *e);
int box_make_cgroup(struct state *s, struct box *b, struct err *e);
int box_open_meters(struct state *s, struct box *b, struct err *e);

/* branches */
/* A box with the variables that this one had after cell n. `present`: and the files of now. */
void box_branch(struct state *s, uint32_t request, uint32_t from, uint32_t n, bool present,
                const struct limits *l);
/* Nobody waits for it any more. */
void box_branch_give_up(struct state *s, uint32_t request);
/* End those that do not come to stand. */
void branches_check(struct state *s);
/* When that is to be done next, or 0. */
int64_t branches_next_ms(const struct state *s);
/* The init of `by`, another box, has answered. */
void box_lent(struct state *s, const struct box *by, struct msg *m);
/* What comes on its init's channel while it is made, and not of every box. */
void box_branch_hear(struct state *s, struct box *b, struct msg *m);
/* Its owner wants no more of it, but it has branches. */
void box_linger(struct state *s, struct box *b);
/* One of its branches is gone. */
void box_branch_gone(struct state *s, struct box *parent);

/* stock */
/* One of this phase that fits, with these limits on; or NULL. */
struct box *stock_take(struct state *s, enum box_phase phase, uint32_t environment,
                       const struct limits *l);
/* Make one that is missing. */
void stock_refill(struct state *s);

/* zygotes */
int zygote_start(struct state *s, unsigned environment, struct err *e);
/* It is to answer, or owes nothing any more. */
void zygote_owes(struct state *s, unsigned environment, bool owes);
/* End those that do not answer. */
void zygotes_check(struct state *s);
/* When that is to be done next, or 0. */
int64_t zygotes_next_ms(const struct state *s);
bool zygote_can_fork(const struct state *s, unsigned environment);
/* Ask for a fork into this box, or for its usher. */
int zygote_ask(struct state *s, const struct box *b, struct err *e);
/* The usher of this box is to leave; the answer is box_dismissed. */
void zygote_dismiss(struct state *s, struct box *b);
bool zygote_died(struct state *s, pid_t pid, int status);

/* The keeper from its first moment, in its namespaces. A byte in `go`: its ids are mapped. */
_Noreturn void keeper_stand(struct launch *l, int go);
/* Tell the owner why there will be no keeper. `step` may be NULL: it was none. */
void keeper_tell_failed(const char *step, const struct err *why);
/* And when it has its ids and its root. */
_Noreturn void keeper_run(struct state *s, int owner_fd);
