/* path: see path.h. */
#include "base/path.h"

#include <string.h>

static enum path_fault check_part(const char *part, size_t len)
{
    if (len == 0)
        return PATH_EMPTY_PART;
    if (part[0] == '.' && (len == 1 || (len == 2 && part[1] == '.')))
        return PATH_DOTS;
    return len > PATH_PART_LONGEST ? PATH_LONG_PART : PATH_FINE;
}

enum path_fault path_check(const char *path, size_t len)
{
    enum path_fault fault = PATH_FINE;

    if (len == 0)
        return PATH_EMPTY;
    if (len > PATH_LONGEST)
        return PATH_LONG;
    if (memchr(path, '\0', len))
        return PATH_NUL;
    for (size_t at = 0, end; at <= len && !fault; at = end + 1) {
        const char *slash = memchr(path + at, '/', len - at);
        end = slash ? (size_t)(slash - path) : len;
        fault = check_part(path + at, end - at);
    }
    return fault;
}

const char *path_fault_text(enum path_fault fault)
{
    static const char *const texts[] = {
        [PATH_FINE] = "a path like any other",
        [PATH_EMPTY] = "a path must not be empty",
        [PATH_LONG] = "a path must not be longer than 4095 bytes",
        [PATH_NUL] = "a path must not have a NUL in it",
        [PATH_EMPTY_PART] = "a path must be relative and have no empty part",
        [PATH_DOTS] = "a path must not have \".\" or \"..\" as a part",
        [PATH_LONG_PART] = "a part of a path must not be longer than 255 bytes",
    };
    return texts[fault];
}
