/* words: see words.h. */
#include "session/words.h"

#include <stdio.h>

char *words_size(uint64_t bytes, char ret[WORDS_SIZE])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    unsigned i = 0;

    if (bytes < 1000) {
        snprintf(ret, WORDS_SIZE, "%u B", (unsigned)bytes);
        return ret;
    }
    for (; value >= 999.95 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
        value /= 1000;
    snprintf(ret, WORDS_SIZE, "%.1f %s", value, units[i]);
    return ret;
}

char *words_limit_size(uint64_t bytes, char ret[WORDS_SIZE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned i = 0;

    while (bytes && bytes % 1024 == 0 && i + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        i++;
    }
    if (bytes >= 1000000)
        return words_size(bytes << (10 * i), ret);
    snprintf(ret, WORDS_SIZE, "%llu %s", (unsigned long long)bytes, units[i]);
    return ret;
}

/* What kind of a limit on the workspace it was, only the session's limits tell. */
static const char *words_workspace(const struct cell *c, const struct limits *limits,
                                   const char *bytes, char *ret, size_t size)
{
    double limit = c->limit.limit;

    if (!limits) {
        snprintf(ret, size, "limit of the workspace");
    } else if (limit == (double)limits->files && limits->files != limits->disk) {
        snprintf(ret, size, "limit of %g files in the workspace", limit);
        return "files";
    } else {
        snprintf(ret, size, "workspace limit of %s", bytes);
    }
    return "disk";
}

const char *words_limit(const struct cell *c, const struct limits *limits, char *ret, size_t size)
{
    double limit = c->limit.limit;
    char bytes[WORDS_SIZE] = "the whole machine";

    if (limit >= 0 && limit < 1e18) /* else there was none, and still it was met */
        words_limit_size((uint64_t)limit, bytes);
    switch (c->limit.kind) {
    case LIMIT_KIND_WALL:
        snprintf(ret, size, "wall time limit of %g s", limit);
        return "timeout";
    case LIMIT_KIND_CPU:
        snprintf(ret, size, "CPU time limit of %g s", limit);
        return "cpu";
    case LIMIT_KIND_MEMORY:
        snprintf(ret, size, "memory limit of %s", bytes);
        return "memory";
    case LIMIT_KIND_PIDS:
        snprintf(ret, size, "limit of %g processes and threads", limit);
        return "pids";
    case LIMIT_KIND_DISK:
        return words_workspace(c, limits, bytes, ret, size);
    default:
        snprintf(ret, size, "output limit of %s", bytes);
        return "output";
    }
}
