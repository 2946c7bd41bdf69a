/* home: see home.h. */
#include "base/home.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

const char *home_directory(void)
{
    const char *home = getenv("HOME");

    if (!home || home[0] != '/') {
        const struct passwd *pw = getpwuid(getuid());
        home = pw ? pw->pw_dir : NULL;
    }
    return home && home[0] == '/' ? home : NULL;
}
