/* uploads: see uploads.h. */
#include "cli/uploads.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "cli/cli.h"
#include "session/cell_json.h"

#define UPLOADS_MAX 1000

static const struct upload *find(const struct uploads *u, const char *name)
{
    for (unsigned i = 0; i < u->n; i++)
        if (strcmp(u->list[i].name, name) == 0)
            return &u->list[i];
    return NULL;
}

int uploads_add_named(struct uploads *u, const char *name, const char *path)
{
    const struct upload one = {.name = xstrdup(name), .path = xstrdup(path), .fd = -1};

    if (path_check(name, strlen(name)) || u->n == UPLOADS_MAX || find(u, name)) {
        free(one.name);
        free(one.path);
        return find(u, name) ? 0 : -1;
    }
    u->list = reallocarray(u->list, u->n + 1, sizeof(one));
    assert_that(u->list);
    u->list[u->n++] = one;
    return 0;
}

int uploads_add(struct uploads *u, const char *verb, char *arg)
{
    char *equals = strchr(arg, '=');
    const char *name, *path = arg;

    /* A file that is called so is meant before a name for another. */
    if (equals && access(arg, F_OK) < 0) {
        *equals = '\0';
        name = arg;
        path = equals + 1;
    } else {
        const char *slash = strrchr(arg, '/');
        name = slash ? slash + 1 : arg;
    }
    if (path_check(name, strlen(name)))
        return usage_error(verb, "-f: \"%s\" cannot be the name of a file in the workspace", name);
    if (find(u, name))
        return usage_error(
            verb, "-f: two files would be called \"%s\": rename one as in -f other=%s", name, path);
    if (u->n == UPLOADS_MAX)
        return usage_error(verb, "-f: more than %d files", UPLOADS_MAX);
    return uploads_add_named(u, name, path);
}

int uploads_open(struct uploads *u, struct err *e)
{
    struct stat st;

    for (unsigned i = 0; i < u->n; i++) {
        struct upload *one = &u->list[i];
        one->fd = open(one->path, O_RDONLY | O_CLOEXEC);
        if (one->fd < 0 || fstat(one->fd, &st) < 0)
            return err_set(e, errno, "cannot open %s", one->path);
        if (S_ISDIR(st.st_mode))
            return err_set(e, 0, "%s is a directory: -f takes files", one->path);
    }
    return 0;
}

int uploads_put(struct uploads *u, struct guest *g, struct err *e)
{
    for (unsigned i = 0; i < u->n; i++) {
        struct upload *one = &u->list[i];
        (void)lseek(one->fd, 0, SEEK_SET); /* a pipe has only one reading */
        int turn = guest_put(g, one->name, one->fd, e);
        if (turn > 0)
            return turn;
        if (turn < 0) {
            err_wrap(e, "cannot copy %s into the workspace", one->path);
            if (e->code == ENOSPC)
                strncat(e->text, " (raise --disk or --files)",
                        sizeof(e->text) - strlen(e->text) - 1);
            return -1;
        }
    }
    return 0;
}

/* -1: it cannot be read, or not twice. */
static int hash(int fd, uint64_t *ret_size, char ret_hex[2 * SHA256_DIGEST_SIZE + 1])
{
    uint8_t piece[16 << 10], digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx ctx;
    uint64_t at = 0;
    ssize_t n;

    sha256_init(&ctx);
    while ((n = pread(fd, piece, sizeof(piece), (off_t)at)) > 0) {
        sha256_update(&ctx, (size_t)n, piece);
        at += (uint64_t)n;
    }
    if (n < 0)
        return -1;
    sha256_digest(&ctx, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
    *ret_size = at;
    return 0;
}

json_t *uploads_json(const struct uploads *u)
{
    char hex[2 * SHA256_DIGEST_SIZE + 1];
    json_t *list = json_array();
    uint64_t size;

    for (unsigned i = 0; i < u->n; i++) {
        if (hash(u->list[i].fd, &size, hex) < 0)
            continue;
        json_t *name = cell_text_json(u->list[i].name, strlen(u->list[i].name));
        json_t *file =
            json_pack("{s:o, s:I, s:s}", "name", name, "size", (json_int_t)size, "sha256", hex);
        if (!file || json_array_append_new(list, file) < 0)
            bug("cannot build JSON");
    }
    return list;
}

void uploads_done(struct uploads *u)
{
    for (unsigned i = 0; i < u->n; i++) {
        fd_close(&u->list[i].fd);
        free(u->list[i].name);
        free(u->list[i].path);
    }
    free(u->list);
    *u = (struct uploads){0};
}
