/* mounts: see mounts.h. Reads what the kernel writes, and nothing of a guest's. */
#include "box/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In mountinfo blanks and the like are octal: \040. */
static void unescape(char *path)
{
    char *to = path;

    for (const char *from = path; *from; to++) {
        if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

static bool is_below(const char *path, const char *top)
{
    size_t n = strlen(top);

    return strncmp(path, top, n) == 0 && path[n] == '/';
}

int mounts_below(const char *top, bool *ret, struct err *e)
{
    char *line = NULL, *point = NULL;
    size_t size = 0;

    FILE *f = fopen("/proc/self/mountinfo", "re");
    if (!f)
        return err_set(e, errno, "cannot read /proc/self/mountinfo");
    bool found = false;
    while (!found && getline(&line, &size, f) > 0)
        if (sscanf(line, "%*s %*s %*s %*s %ms", &point) == 1) {
            unescape(point);
            found = is_below(point, top);
            free(point);
        }
    free(line);
    fclose(f);
    *ret = found;
    return 0;
}
