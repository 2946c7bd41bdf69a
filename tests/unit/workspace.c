/* workspace: see workspace.h. */
#include "workspace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "init/files.h"

#define NOBODY 65534

static char place[64];

void workspace_open(void)
{
    struct err e;

    /* A tmpfs, as the real one is. */
    snprintf(place, sizeof(place), "%s/workspace-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (geteuid() == 0) {
        setfsgid(NOBODY);
        setfsuid(NOBODY); /* and the capabilities over files go with it */
    }
    assert_that(mkdtemp(place) && chdir(place) == 0);
    assert_that(files_init(place, &e) == 0);
}

void workspace_close(void)
{
    char command[256];

    assert_that(chdir("/") == 0);
    if (geteuid() == 0) {
        setfsuid(0);
        setfsgid(0);
    }
    snprintf(command, sizeof(command), "chmod -R u+rwx %s && rm -rf %s", place, place);
    assert_that(system(command) == 0);
}

void workspace_write(const char *path, const char *text)
{
    char parent[4096];

    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
        mkdir(parent, 0755);
    }
    cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_that(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

int workspace_has(const char *path, const char *text)
{
    char got[256];
    struct err e;

    return fd_get_text(AT_FDCWD, path, got, sizeof(got), &e) == 0 && strcmp(got, text) == 0;
}
