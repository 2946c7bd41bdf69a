/* beside: see beside.h. */
#include "base/beside.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_there(const char *exe, const char *slash, const char *name, char *ret, size_t size)
{
    int n = snprintf(ret, size, "%.*s/%s", (int)(slash - exe), exe, name);

    return n > 0 && (size_t)n < size && access(ret, R_OK) == 0;
}

int beside_find(const char *in_build, const char *installed, char *ret, size_t size, struct err *e)
{
    char exe[PATH_MAX], in_lib[128];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    if (n < 0)
        return err_set(e, errno, "cannot find my own binary");
    exe[n] = '\0';
    snprintf(in_lib, sizeof(in_lib), "../lib/retort/%s", installed);
    for (const char *at = strrchr(exe, '/'); at; at = memrchr(exe, '/', (size_t)(at - exe)))
        if (is_there(exe, at, in_build, ret, size) || is_there(exe, at, in_lib, ret, size))
            return 0;
    return err_set(e, ENOENT, "cannot find %s, which comes with retort, near %s", installed, exe);
}
