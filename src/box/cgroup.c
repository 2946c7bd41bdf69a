/* cgroup: the cgroup of one box; see cgroup.h. Runs in the keeper. */
#include "box/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define CPU_PERIOD_US 100000
#define SOCKETS_SHARE 8 /* buffers of sockets: this part of the memory limit */

static int put(const struct cgroup_ground *g, unsigned dir, unsigned box, const char *file,
               const char *text, struct err *e)
{
    char path[96];

    snprintf(path, sizeof(path), "box-%u/%s", box, file);
    return fd_put_text(g->dirs[dir], path, text, e);
}

/* Which hierarchy has the files of this controller: their number and order differ from host to host. */
static int place(const struct cgroup_ground *g, enum cgroup_controller controller)
{
    return g->version == 1 ? g->has[controller] : 0;
}

static int put_v1(const struct cgroup_ground *g, unsigned box, enum cgroup_controller controller,
                  const char *file, const char *text, struct err *e)
{
    int dir = place(g, controller);

    return dir < 0 ? err_set(e, ENOENT, "no cgroup has %s", file)
                   : put(g, (unsigned)dir, box, file, text, e);
}

static void number_or(char *ret, size_t size, uint64_t value, const char *none)
{
    if (value == LIMIT_NONE)
        snprintf(ret, size, "%s", none);
    else
        snprintf(ret, size, "%" PRIu64, value);
}

/* Swap may never be limited below memory, so raising and lowering go in opposite orders. Kernels
 * without swap accounting have no file for it. */
static int limit_memory_v1(const struct cgroup_ground *g, unsigned box, const char *memory,
                           struct err *e)
{
    static const char *const alone = "memory.limit_in_bytes";
    bool later = put_v1(g, box, CGROUP_MEMORY, alone, memory, e) < 0;

    if (later && e->code != EINVAL)
        return -1;
    if (put_v1(g, box, CGROUP_MEMORY, "memory.memsw.limit_in_bytes", memory, e) < 0 &&
        e->code != ENOENT)
        return -1;
    return later ? put_v1(g, box, CGROUP_MEMORY, alone, memory, e) : 0;
}

static int limit_v1(const struct cgroup_ground *g, unsigned box, const struct limits *l,
                    struct err *e)
{
    char memory[32], pids[32], quota[32] = "-1", sockets[32] = "-1";

    number_or(memory, sizeof(memory), l->memory, "-1");
    number_or(pids, sizeof(pids), l->pids, "max");
    if (l->cpus_milli != LIMIT_NONE)
        snprintf(quota, sizeof(quota), "%" PRIu64, l->cpus_milli * CPU_PERIOD_US / 1000);
    if (limit_memory_v1(g, box, memory, e) < 0 ||
        put_v1(g, box, CGROUP_PIDS, "pids.max", pids, e) < 0)
        return -1;
    /* Version 1 counts the buffers of sockets apart, and by default without a limit. */
    if (l->memory != LIMIT_NONE)
        snprintf(sockets, sizeof(sockets), "%" PRIu64, l->memory / SOCKETS_SHARE);
    if (put_v1(g, box, CGROUP_MEMORY, "memory.kmem.tcp.limit_in_bytes", sockets, e) < 0 &&
        e->code != ENOENT)
        return -1;
    /* Some hosts have no cpu hierarchy. */
    if (put_v1(g, box, CGROUP_CPU, "cpu.cfs_quota_us", quota, e) < 0 && e->code != ENOENT)
        return -1;
    return 0;
}

static int limit_v2(const struct cgroup_ground *g, unsigned box, const struct limits *l,
                    struct err *e)
{
    char memory[32], pids[32], quota[64] = "max";

    number_or(memory, sizeof(memory), l->memory, "max");
    number_or(pids, sizeof(pids), l->pids, "max");
    if (l->cpus_milli != LIMIT_NONE)
        snprintf(quota, sizeof(quota), "%" PRIu64 " %d", l->cpus_milli * CPU_PERIOD_US / 1000,
                 CPU_PERIOD_US);
    if (put(g, 0, box, "memory.max", memory, e) < 0 || put(g, 0, box, "pids.max", pids, e) < 0)
        return -1;
    if (put(g, 0, box, "memory.swap.max", l->memory == LIMIT_NONE ? "max" : "0", e) < 0 &&
        e->code != ENOENT)
        return -1;
    if (put(g, 0, box, "cpu.max", quota, e) < 0 && e->code != ENOENT)
        return -1;
    return 0;
}

/* A limit counts from what the user asked for; our own init has its process on top. */
static uint64_t with_init(uint64_t pids)
{
    return pids == LIMIT_NONE ? pids : pids + 1;
}

int cgroup_limit(const struct cgroup_ground *g, unsigned box, const struct limits *l, struct err *e)
{
    struct limits all = *l;

    all.pids = with_init(l->pids);
    switch (g->version) {
    case 1:
        return limit_v1(g, box, &all, e);
    case 2:
        return limit_v2(g, box, &all, e);
    default:
        return 0;
    }
}

int cgroup_limit_pids(const struct cgroup_ground *g, unsigned box, uint64_t pids, struct err *e)
{
    char text[32];

    number_or(text, sizeof(text), with_init(pids), "max");
    switch (g->version) {
    case 1:
        return put_v1(g, box, CGROUP_PIDS, "pids.max", text, e);
    case 2:
        return put(g, 0, box, "pids.max", text, e);
    default:
        return 0;
    }
}

int cgroup_make(const struct cgroup_ground *g, unsigned box, const struct limits *l, struct err *e)
{
    char name[32];

    snprintf(name, sizeof(name), "box-%u", box);
    for (unsigned i = 0; i < g->n_dirs; i++)
        if (mkdirat(g->dirs[i], name, 0755) < 0)
            return err_set(e, errno, "cannot make cgroup %s", name);
    return cgroup_limit(g, box, l, e);
}

int cgroup_ways(const struct cgroup_ground *g, unsigned box, int ret[CGROUP_HIERARCHIES],
                struct err *e)
{
    char path[64];

    snprintf(path, sizeof(path), "box-%u%s", box, g->version == 1 ? "/tasks" : "");
    for (unsigned i = 0; i < g->n_dirs; i++) {
        ret[i] = openat(g->dirs[i], path, (g->version == 1 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        if (ret[i] < 0) {
            err_set(e, errno, "cannot open cgroup %s", path);
            while (i-- > 0)
                fd_close(&ret[i]);
            return -1;
        }
    }
    return (int)g->n_dirs;
}

int cgroup_open_to_all(const struct cgroup_ground *g, unsigned box, bool open, struct err *e)
{
    char path[64];

    snprintf(path, sizeof(path), "box-%u/tasks", box);
    for (unsigned i = 0; g->version == 1 && i < g->n_dirs; i++)
        if (fchmodat(g->dirs[i], path, open ? 0666 : 0644, 0) < 0)
            return err_set(e, errno, "cannot open the cgroup %s", path);
    return 0;
}

int cgroup_move(const struct cgroup_ground *g, unsigned box, pid_t pid, struct err *e)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", pid);
    return g->version == 2 ? put(g, 0, box, "cgroup.procs", text, e) : 0;
}

static int open_meter(const struct cgroup_ground *g, unsigned box,
                      enum cgroup_controller controller, const char *file, int flags)
{
    char path[96];
    int dir = place(g, controller);

    snprintf(path, sizeof(path), "box-%u/%s", box, file);
    errno = ENOENT;
    return dir < 0 ? -1 : openat(g->dirs[dir], path, flags | O_CLOEXEC);
}

int cgroup_meters(const struct cgroup_ground *g, unsigned box, int ret[CGROUP_METERS],
                  struct err *e)
{
    static const enum cgroup_controller whose[CGROUP_METERS] = {CGROUP_MEMORY, CGROUP_MEMORY,
                                                                CGROUP_PIDS, CGROUP_CPUACCT};
    static const char *const files[2][CGROUP_METERS] = {
        {"memory.max_usage_in_bytes", "memory.oom_control", "pids.events", "cpuacct.usage"},
        {"memory.peak", "memory.events", "pids.events", "cpu.stat"},
    };

    if (g->version == 0)
        return 0;
    for (int i = 0; i < CGROUP_METERS; i++) {
        const char *file = files[g->version - 1][i];
        /* The peak can be started anew by writing to it; old kernels open it for reading only, and
         * older ones have none: what is used now is shown instead. */
        ret[i] = open_meter(g, box, whose[i], file, i == 0 ? O_RDWR : O_RDONLY);
        if (ret[i] < 0 && i == 0)
            ret[i] = open_meter(g, box, CGROUP_MEMORY, file, O_RDONLY);
        if (ret[i] < 0 && i == 0)
            ret[i] = open_meter(g, box, CGROUP_MEMORY, "memory.current", O_RDONLY);
        if (ret[i] < 0) {
            err_set(e, errno, "cannot open cgroup file %s", file);
            while (i-- > 0)
                fd_close(&ret[i]);
            return -1;
        }
    }
    return CGROUP_METERS;
}

/* By the last of the numbers that a process has: the one in its own namespace. */
static bool waits(const struct cgroup_spared *spared, pid_t pid)
{
    char path[64], text[2048];
    struct err ignored;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (spared->n_waiting == 0 || fd_get_text(AT_FDCWD, path, text, sizeof(text), &ignored) < 0)
        return false;
    const char *line = strstr(text, "\nNSpid:");
    const char *end = line ? strchr(line + 1, '\n') : NULL;
    const char *last = end ? memrchr(line, '\t', (size_t)(end - line)) : NULL;
    long own = last ? strtol(last, NULL, 10) : 0;
    for (unsigned i = 0; i < spared->n_waiting; i++)
        if (spared->waiting[i] == own)
            return true;
    return false;
}

/* Once. What was being forked when the limit went on is seen the next time. */
static bool end_others_once(int dir, const char *path, const struct cgroup_spared *spared)
{
    bool any = false;
    int pid;

    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    FILE *procs = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !procs)
        close(fd);
    while (procs && fscanf(procs, "%d", &pid) == 1)
        if (pid > 0 && pid != spared->init && !waits(spared, pid)) {
            /* Read a moment ago: numbers come round only after thousands of others. */
            kill(pid, SIGKILL);
            any = true;
        }
    if (procs)
        fclose(procs);
    return any;
}

void cgroup_end_others(const struct cgroup_ground *g, unsigned box,
                       const struct cgroup_spared *spared)
{
    char path[64];
    struct err ignored;

    if (g->version == 0)
        return;
    if (g->version == 1)
        put_v1(g, box, CGROUP_PIDS, "pids.max", "0", &ignored);
    else
        put(g, 0, box, "pids.max", "0", &ignored);
    snprintf(path, sizeof(path), "box-%u/cgroup.procs", box);
    for (int tries = 0; tries < 5 && end_others_once(g->dirs[0], path, spared); tries++)
        ;
}

int cgroup_remove(const struct cgroup_ground *g, unsigned box, struct err *e)
{
    char name[32];

    snprintf(name, sizeof(name), "box-%u", box);
    for (unsigned i = 0; i < g->n_dirs; i++)
        if (unlinkat(g->dirs[i], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            return err_set(e, errno, "cannot remove cgroup %s", name);
    return 0;
}
