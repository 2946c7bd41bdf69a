/* folder: see folder.h. */
#include "cli/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"

#define DEEPEST 16
#define NAMES_MAX 10000 /* of one directory */

struct walk {
    struct folder *folder;
    int root;
    unsigned depth;
};

static void walk(struct walk *w, const char *path);

/* A pipe would wait for its writer: not blocking, and then seen for what it is. */
static int open_below(const struct walk *w, const char *path, uint64_t flags)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    return (int)syscall(SYS_openat2, w->root, path, &how, sizeof(how));
}

static void take_file(struct walk *w, const char *path)
{
    struct folder *f = w->folder;
    struct stat st;

    if (path_check(path, strlen(path)) || f->n == FOLDER_FILES_MAX) {
        f->left_out++;
        return;
    }
    cleanup_fd int fd = open_below(w, path, 0);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        f->left_out++;
        return;
    }
    f->files[f->n++] = (struct gate_file){.name = xstrdup(path), .fd = fd_steal(&fd)};
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_dots(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static void take_entry(struct walk *w, int dir, const char *below, const char *name)
{
    struct stat st;
    cleanup_free char *path = below[0] ? xasprintf("%s/%s", below, name) : xstrdup(name);

    if (name[0] == '.' || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        w->folder->left_out++;
    else if (S_ISDIR(st.st_mode))
        walk(w, path);
    else if (S_ISREG(st.st_mode))
        take_file(w, path);
    else
        w->folder->left_out++;
}

/* `path` is "" for the folder itself. In the order of names, so that the same ones are left out each time. */
static void walk(struct walk *w, const char *path)
{
    cleanup_fd int dir = open_below(w, path[0] ? path : ".", O_DIRECTORY);
    struct dirent **names;

    int n = dir < 0 || w->depth == DEEPEST ? -1 : scandirat(dir, ".", &names, not_dots, by_name);
    if (n < 0) {
        w->folder->left_out++;
        return;
    }
    w->depth++;
    for (int i = 0; i < n; i++) {
        if (i < NAMES_MAX)
            take_entry(w, dir, path, names[i]->d_name);
        else
            w->folder->left_out++;
        free(names[i]);
    }
    w->depth--;
    free(names);
}

int folder_open(struct folder *f, const char *dir, struct err *e)
{
    cleanup_fd int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct walk w = {.folder = f, .root = root};

    if (root < 0)
        return err_set(e, errno, "cannot open the folder %s", dir);
    walk(&w, "");
    return 0;
}

void folder_done(struct folder *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        free(f->files[i].name);
        fd_close(&f->files[i].fd);
    }
    f->n = 0;
}
