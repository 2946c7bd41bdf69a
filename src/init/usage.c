/* usage: see usage.h. Runs in init, only on hosts where an ordinary user has no cgroups.
 *
 * Memory is the proportional set size, because boxes share most of the zygote's pages: counting them
 * fully in each process would make every fork look like 80 MB. What cannot be looked at (a process
 * that made itself undumpable) counts with all that it has resident.
 */
#include "init/usage.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/points.h"

static int read_proc(const char *pid, const char *file, char *ret, size_t size)
{
    char path[320];
    struct err ignored;

    snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
    return fd_get_text(AT_FDCWD, path, ret, size, &ignored);
}

uint64_t usage_resident(const char *pid)
{
    char text[128];

    if (read_proc(pid, "statm", text, sizeof(text)) < 0)
        return 0;
    const char *second = strchr(text, ' ');
    return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t memory_at(const char *place)
{
    char text[2048];

    if (read_proc(place, "smaps_rollup", text, sizeof(text)) == 0) {
        const char *pss = strstr(text, "\nPss:");
        if (pss)
            return strtoull(pss + 5, NULL, 10) * 1024;
    }
    return usage_resident(place);
}

/* A process whose first thread has ended shows nothing at its own place; its other threads do. */
static uint64_t memory_of(const char *pid)
{
    char place[300];
    uint64_t found = memory_at(pid);

    if (found > 0)
        return found;
    snprintf(place, sizeof(place), "/proc/%s/task", pid);
    DIR *d = opendir(place);
    for (struct dirent *entry; d && found == 0 && (entry = readdir(d));) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(place, sizeof(place), "%.16s/task/%.16s", pid, entry->d_name);
        found = memory_at(place);
    }
    if (d)
        closedir(d);
    return found;
}

/* The name may hold blanks and brackets, so counting starts behind the last bracket. */
static void read_stat(const char *pid, uint64_t *cpu_us, uint64_t *threads)
{
    enum { NAME = 2, UTIME = 14, CSTIME = 17, THREADS = 20 };
    char text[1024];
    uint64_t ticks = 0;

    if (read_proc(pid, "stat", text, sizeof(text)) < 0)
        return;
    const char *at = strrchr(text, ')');
    for (int field = NAME + 1; at && field <= THREADS; field++) {
        at = strchr(at + 1, ' ');
        if (at && field >= UTIME && field <= CSTIME)
            ticks += strtoull(at + 1, NULL, 10);
        if (at && field == THREADS)
            *threads += strtoull(at + 1, NULL, 10);
    }
    *cpu_us += ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static uint64_t files_in_memory(void)
{
    static const char *const places[] = {"/mnt/data", "/tmp", "/home/user", "/dev/shm"};
    uint64_t sum = 0;
    struct statvfs s;

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (statvfs(places[i], &s) == 0)
            sum += (uint64_t)(s.f_blocks - s.f_bfree) * s.f_frsize;
    return sum;
}

bool usage_of_branch(const char *pid)
{
    char text[2048];

    if (read_proc(pid, "status", text, sizeof(text)) < 0)
        return false;
    const char *numbers = strstr(text, "\nNSpid:\t");
    return numbers && strcspn(numbers + strlen("\nNSpid:\t"), "\t\n") <
                          strcspn(numbers + strlen("\nNSpid:\t"), "\n");
}

void usage_sample(struct usage *u, uint64_t pids, const struct points *waiting)
{
    uint64_t memory = files_in_memory(), cpu = 0, threads = 0;
    struct rusage reaped;
    DIR *d = opendir("/proc");

    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (!isdigit((unsigned char)entry->d_name[0]) || strcmp(entry->d_name, "1") == 0)
            continue;
        if (usage_of_branch(entry->d_name))
            continue;
        /* The one that waits shares nearly all with the live one, and lets nobody see how much. */
        if (!points_has(waiting, atoi(entry->d_name)))
            memory += memory_of(entry->d_name);
        read_stat(entry->d_name, &cpu, &threads);
    }
    if (d)
        closedir(d);
    /* Orphans that we have reaped. */
    if (getrusage(RUSAGE_CHILDREN, &reaped) == 0)
        cpu += (uint64_t)(reaped.ru_utime.tv_sec + reaped.ru_stime.tv_sec) * 1000000 +
               (uint64_t)(reaped.ru_utime.tv_usec + reaped.ru_stime.tv_usec);
    u->now = memory;
    if (memory > u->peak)
        u->peak = memory;
    if (cpu > u->cpu_us)
        u->cpu_us = cpu;
    u->crowded += threads >= pids;
}
