/* proto: who says what to whom. The one list of message types, with their fields in order.
 *
 * u8, u32, u64 are integers, "bytes" and "text" are length-prefixed (see fields.h).
 *
 *   cell frames    owner ⇄ kernel process   frame.h   the box's side is hostile
 *   file messages  owner ⇄ init             msg.h     the box's side is hostile
 *   keeper         owner ⇄ keeper           msg.h
 *   make           keeper ⇄ zygote          msg.h
 *   set-up         keeper ⇄ init, kernel    msg.h     the kernel's only until the box is ready
 *   line           init ⇄ kernel process    msg.h     the kernel's side is hostile
 *   waiting        init ⇄ one that waits    msg.h
 *   handover       init → a branch's init   msg.h
 *   holder         init ⇄ its holder        msg.h
 *
 * "Owner" is whoever owns sessions: the CLI, or the gate of a server.
 */
#pragma once

/* Cell frames. One cell runs at a time.
 *
 * Text does not travel in frames: it is in the two pipes that are the box's descriptors 1 and 2, so
 * that what programs and C libraries write has the same way as print(). To keep stdout, stderr and
 * displays in order, the kernel process sends FENCE before it changes from one stream to another and
 * waits for PASS, which the owner sends when it has read both pipes empty. */
enum cell_frame {
    /* owner → kernel */
    CELL_RUN = 1, /* u32 n, bytes code, u8 flags (enum run_flag), u32 pixels that the longer side of
                       a picture may have (0: as many as it has) */
    CELL_PASS = 2,  /* u32 fence */
    CELL_CHECK = 3, /* bytes code: is it complete? */
    CELL_VARIABLES =
        4, /* runs as a cell does, with a display of VARIABLES_TYPE (session.h); its DONE
                           has n = 0 */

    /* kernel → owner */
    CELL_FENCE = 16,   /* u32 fence */
    CELL_DISPLAY = 17, /* u8 kind (enum display_kind), bytes metadata (a JSON object, or empty),
                          u32 count, count × (text mime, bytes data); text is UTF-8, the rest raw */
    CELL_ERROR = 18,   /* bytes name, bytes value, bytes traceback; at most one per cell */
    CELL_DONE = 19, /* u32 n, u8 status (enum done_status), u32 exit code (SystemExit's), u32 after
                          which cell the state was what it is now, and is kept (or STATE_IS_NEW) */
    CELL_CHECKED = 20, /* u8 (enum check_state), bytes indentation for the next line */
};

enum run_flag {
    RUN_UNDOABLE = 1,     /* the state before it must be kept */
    RUN_KEEP_NOTHING = 2, /* nor is any other in this session */
    RUN_AT_ONCE = 4,      /* the state before it is kept elsewhere: do not wait for that */
    RUN_NEW_FILES = 8,    /* with UNDOABLE: the owner has changed files, which are of that state */
};
#define STATE_IS_NEW UINT32_MAX
enum display_kind { DISPLAY_SHOWN = 0, DISPLAY_RESULT = 1 };
enum done_status { DONE_OK = 0, DONE_ERROR = 1, DONE_INTERRUPTED = 2, DONE_EXIT = 3 };
enum check_state { CHECK_COMPLETE = 0, CHECK_INCOMPLETE = 1, CHECK_INVALID = 2 };

/* File messages: the owner asks, init opens inside the box and answers with descriptors or names.
 * Requests carry a number (u32) that the answer repeats. Paths are relative to the workspace. */
enum file_msg {
    FILE_PUT = 1,     /* u32 req, text path; fd: the reading end of a pipe with the contents.
                         The file appears whole when FILE_PUT_END has come and all was read. */
    FILE_PUT_END = 2, /* u32 req (of the PUT), u64 size; size UINT64_MAX: forget it */
    FILE_GET = 3,     /* u32 req, text path */
    FILE_CHANGES = 4, /* u32 req: what is new since the last time, with hashes */
    FILE_SPACE = 5,   /* u32 req: how full is the workspace */
    FILE_USAGE = 6,   /* u32 req: what the box has used; asked where there is no cgroup to read */
    FILE_LIST = 7,    /* u32 req: every regular file, in the order of their paths' bytes */
    FILE_DELETE = 8,  /* u32 req, text path: a file, or a directory with all that is in it */
    FILE_RESTORE =
        9, /* u32 req, u32 n: the interpreter is dead; let the one take its place that has the
                         state after this cell, and make the workspace what it was then. POINT_NEWEST:
                         the newest, and the workspace stays */
    FILE_POINTS = 10, /* u32 req: which states are kept, and how much memory each has alone */
    FILE_STATES = 13, /* u32 req: the same without the memory, which takes long to find out */
    FILE_KEEP = 11,   /* u32 req, u32 n, u64 memory: so many at most, where it is not
                         CHECKPOINTS_DEFAULT, of a session with this limit; has no answer */
    FILE_SAME = 14, /* u32 req, u32 of, u32 from, u32 to: after these cells the state is what it was
                         after `of`; has no answer */
    FILE_EVICTIONS =
        12, /* u32 req: how many of its own processes have been ended for want of memory,
                            since the box was made */

    FILE_DONE = 16,     /* u32 req, u32 errno (0: done), text reason */
    FILE_OPENED = 17,   /* u32 req; fd */
    FILE_CHANGE = 18,   /* u32 req, u8 (enum file_change), u64 size, bytes sha256 (32, or
                           none), bytes path; then FILE_DONE ends the list */
    FILE_USED = 19,     /* u32 req, u64 bytes, u64 files */
    FILE_USAGE_IS = 20, /* u32 req, u64 cpu_us (all processes of the box, dead ones too), u64
                           peak_bytes, u64 times that no further process could be started */
    FILE_ENTRIES = 21,  /* u32 req, then as many as fit: u64 size, u64 mtime_ns, bytes path; then
                           FILE_DONE ends the list (E2BIG: there are more) */
    FILE_RESTORED =
        22, /* u32 req, u32 n: the state is that after cell n; bytes files that could not be
                           brought back (a line each); fds: the cell's frames, where orders go, stdout,
                           stderr. ENOENT: none waits */
    FILE_EVICTED = 24, /* u32 req, u32 processes */
    FILE_POINT =
        23, /* u32 req, u32 n, u32 up to which cell nothing changed, u32 and u32 which of them
                           are undone (0, 0: none), u64 ms since 1970, u64 bytes that it alone has, bytes
                           lost (a line each); then FILE_DONE */
};

#define POINT_NEWEST UINT32_MAX

enum file_change { FILE_CREATED = 0, FILE_CHANGED = 1, FILE_DELETED = 2 };

/* The keeper's table. */
enum keeper_msg {
    KEEPER_CREATE = 1,  /* u32 req, u32 environment (index), limits (see limits_wire.h) */
    KEEPER_SIGNAL = 2,  /* u32 box, u32 signal: SIGINT or SIGKILL, to the kernel process */
    KEEPER_DESTROY = 3, /* u32 box */
    KEEPER_STATUS = 4,  /* u32 req */
    KEEPER_BRANCH =
        5, /* u32 req, u32 box, u32 n, u8 whether the files are those of now, limits: a box with
                           the variables that this one had after cell n, and its files */
    KEEPER_GIVE_UP = 6, /* u32 req of a BRANCH: nobody waits for it any more */
    KEEPER_LAUNCH = 7,  /* to its program, before all others: see keeper/launch.h */

    KEEPER_CREATED = 16,   /* u32 req, u32 box, u8 from_pool, u8 meter (enum meter_kind), u8 whether
                              there were files before any user code ran in it; fds: the
                              cell's frames, where orders go, stdout, stderr, files, then the meter's
                              in the order below, then the workspace, to see whether it is empty */
    KEEPER_FAILED = 17,    /* u32 req, text why */
    KEEPER_DIED = 18,      /* u32 box, u32 wait status of the kernel process, u8 init said that
                              memory was short (see SETUP_SHORT) */
    KEEPER_DESTROYED = 19, /* u32 box */
    KEEPER_STATE = 20,     /* u32 req, u32 boxes, u32 ready, u32 blank, u32 zygote pid, u32 zygotes
                              started */
    KEEPER_STANDS = 21,    /* the second message: it is ready for requests */
    KEEPER_GONE = 22,      /* text why: the keeper cannot go on */
    KEEPER_BORN = 23,      /* the first message, from its program: u32 pid; fd: its pidfd */
};

/* How a box's use is measured, by descriptors of its cgroup's files, in order:
 *
 *   V1  memory.max_usage_in_bytes (rw: "0" resets it), memory.oom_control, pids.events, cpuacct.usage
 *   V2  memory.peak (rw where the kernel can reset it), memory.events, pids.events, cpu.stat
 *
 * NONE has no descriptors: init is asked (FILE_USAGE). */
enum meter_kind { METER_NONE = 0, METER_V1 = 1, METER_V2 = 2 };
#define METER_FDS 4

/* Keeper to zygote and back. */
enum zygote_msg {
    ZYGOTE_MAKE = 1,    /* u32 box, plan (see box.h); descriptors as in zygote.h: fork into it */
    ZYGOTE_POST = 2,    /* the same: an usher is to go in (see zygote/between.h), and to wait */
    ZYGOTE_FILL = 3,    /* u32 box, plan: the usher there is to fork */
    ZYGOTE_DISMISS = 4, /* the same: it is to leave */

    ZYGOTE_WARM = 16,      /* text versions: imports are done, forks may be asked for */
    ZYGOTE_MADE = 17,      /* u32 box, u32 pid; an usher that was there is gone */
    ZYGOTE_FAILED = 18,    /* u32 box, text why; the same */
    ZYGOTE_POSTED = 19,    /* u32 box, u32 pid: its usher waits there */
    ZYGOTE_DISMISSED = 20, /* u32 box, u32 0: it is gone */
};

/* Set-up: each half of a box says where it is; the keeper says when to go on. */
enum setup_msg {
    SETUP_GO = 1, /* identity is mapped (init), or the root stands (kernel; fds: the network
                         namespace and, for a branch, that of cgroups) */
    SETUP_LEND =
        2, /* to init: u32 box, u32 n, u8 present; fd: a branch of the state after cell n is to be
                         made, as this box; let its init have the files here, those of now or of then */
    SETUP_BRANCH =
        3, /* to init: u32 n; fds as in enum branch_fd: for the one that waits with this state */
    SETUP_LEAVE = 4, /* to init: the session is over; stay, with nothing, for its branches' sake */

    SETUP_DONE =
        16, /* this half is ready (init: u8 whether there are files; fds: the network namespace that it made, the
                          workspace and, of a branch, the namespace of cgroups) */
    SETUP_SHORT = 18,  /* init, where no cgroup is: the box was over its memory limit */
    SETUP_FAILED = 17, /* text step, text why: it has exited */
    SETUP_WAITS =
        19, /* init: u32 pid, u8 whether it waits still: one that is not the guest's to end */
    SETUP_LIVE = 20, /* init; fd: a pidfd of the kernel process, from now on this one */
    SETUP_DIED = 21, /* init: u32 wait status of that one */
    SETUP_LENT =
        22, /* init: u32 box (the branch), text why not; fds: its user, pid and mount namespaces */
    SETUP_BORN =
        23, /* a branch's init; fds: the namespaces that it was born into, and ways into the cgroup
               for its user */
};

/* Why not, of a SETUP_LENT: the owner knows what to say then. */
#define LENT_NOT_KEPT "this state is not kept"

/* The kernel process and those that wait speak to init; who speaks is told by the kernel (SCM_CREDENTIALS). */
enum line_msg {
    LINE_HERE = 1,   /* the first word: this is the kernel process */
    LINE_WANT = 2,   /* u32 seq, u32 n: it would fork one that waits, with the state after cell n */
    LINE_WAITS = 3,  /* u32 n, bytes lost (a line each); fd: where it waits */
    LINE_FAILED = 4, /* u32 seq: it could not fork */

    /* with the seq of what they answer */
    LINE_GO = 16,    /* fork now */
    LINE_TAKEN = 17, /* it waits */
    LINE_NO = 18,    /* not now, or it did not come */
};

enum waiting_msg {
    WAITING_WAKE =
        1, /* u32 n, the cell that it goes on after; fds: stdout, stderr, the cell's frames,
                           its orders, the line */
    WAITING_SCORE = 2,  /* u32 how soon it is ended when memory is short (oom_score_adj) */
    WAITING_WEIGH = 3,  /* how much has it alone? */
    WAITING_BRANCH = 4, /* u32 n, the cell that it leaves after; fds as in enum branch_fd: fork a
                           kernel process for that box */

    WAITING_WEIGHT = 16, /* u64 bytes, u64 bytes of memory that it has together with the live one */
};
#define WAITING_FDS 5
/* A line of what is lost. */
#define POINT_SHARED "shared memory of %zu kB"

/* Descriptors of a SETUP_BRANCH and a WAITING_BRANCH. The last are ways into the cgroup, as many as there are. */
enum branch_fd {
    BRANCH_FD_STDOUT,
    BRANCH_FD_STDERR,
    BRANCH_FD_CELL_OUT,
    BRANCH_FD_CELL_IN,
    BRANCH_FD_LINE,
    BRANCH_FD_SETUP,
    BRANCH_FD_USER, /* namespaces */
    BRANCH_FD_PID,
    BRANCH_FD_MNT,
    BRANCH_FD_IPC,
    BRANCH_FD_UTS,
    BRANCH_FD_WAYS,
};

/* What a branch's init gets of the files, from the one of the box that it comes from; then the end. */
enum handover_msg {
    HANDOVER_ENTRY =
        1, /* u32 mode, u64 mtime_ns, u64 size, u64 offset, text path, text target; fd: a regular
                          file's contents */
};

/* Copies of the workspace (init/copies.c): where in its memory, and how much. */
enum holder_msg {
    HOLDER_PUT = 1,  /* u64 0, u64 size; fd: copy this; the answer: u64 where, 0: it is not */
    HOLDER_GET = 2,  /* u64 where, u64 size; fd: write it there; the answer: u64 whether it is */
    HOLDER_DROP = 3, /* u64 where, u64 size; has no answer */

    HOLDER_ANSWER = 16,
};
