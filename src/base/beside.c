/* beside: see beside.h. */
#include "base/beside.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Below one of the directories that the program lies in, the nearest first. */
static bool is_below(const char *exe, const char *name, char *ret, size_t size)
{
    for (const char *at = exe + strlen(exe); at; at = memrchr(exe, '/', (size_t)(at - exe))) {
        int n = snprintf(ret, size, "%.*s/%s", (int)(at - exe), exe, name);
        if (*at == '/' && n > 0 && (size_t)n < size && access(ret, R_OK) == 0)
            return true;
    }
    return false;
}

int beside_find(const char *in_build, const char *installed, char *ret, size_t size, struct err *e)
{
    char exe[PATH_MAX], in_lib[128];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    if (n < 0)
        return err_set(e, errno, "cannot find my own binary");
    exe[n] = '\0';
    snprintf(in_lib, sizeof(in_lib), "../lib/retort/%s", installed);
    if (is_below(exe, in_build, ret, size) || is_below(exe, in_lib, ret, size))
        return 0;
    return err_set(e, ENOENT, "cannot find %s, which comes with retort, near %s", installed, exe);
}
