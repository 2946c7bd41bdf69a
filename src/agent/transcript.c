/* transcript: see transcript.h. */
#include "agent/transcript.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/home.h"

#define SUFFIX ".jsonl"
#define NAME_MAX_LEN 64

/* ---- where ---- */

static int make_directory(const char *path, struct err *e)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(e, errno, "cannot make %s", path);
    return 0;
}

/* Makes what is missing of it. */
static char *directory(struct err *e)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = home_directory();
    char *path = xdg && xdg[0] == '/' ? xasprintf("%s/retort/chats", xdg)
                 : home               ? xasprintf("%s/.local/state/retort/chats", home)
                                      : NULL;

    if (!path) {
        err_set(e, 0, "there is no home directory for transcripts: set HOME");
        return NULL;
    }
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int made = make_directory(path, e);
        *slash = '/';
        if (made < 0)
            goto failed;
    }
    if (make_directory(path, e) == 0)
        return path;
failed:
    free(path);
    return NULL;
}

static int is_transcript(const struct dirent *d)
{
    size_t len = strlen(d->d_name);

    return len > strlen(SUFFIX) && len < NAME_MAX_LEN && d->d_name[0] >= '0' &&
           d->d_name[0] <= '9' && strcmp(d->d_name + len - strlen(SUFFIX), SUFFIX) == 0;
}

/* Their names begin with the time, so that the order of names is theirs. */
static int list(const char *dir, struct dirent ***ret)
{
    return scandir(dir, ret, is_transcript, alphasort);
}

static void free_list(struct dirent **found, int n)
{
    for (int i = 0; i < n; i++)
        free(found[i]);
    if (n >= 0)
        free(found);
}

static void remove_old(const char *dir)
{
    struct dirent **found;
    int n = list(dir, &found);

    for (int i = 0; i + TRANSCRIPTS_KEPT <= n; i++) {
        cleanup_free char *path = xasprintf("%s/%s", dir, found[i]->d_name);
        unlink(path);
    }
    free_list(found, n);
}

/* ---- writing ---- */

static bool write_line(struct transcript *t, const json_t *j)
{
    char *text = json_dumps(j, JSON_COMPACT);
    struct buf line = {0};

    assert_that(text);
    buf_add_text(&line, text);
    buf_add_text(&line, "\n");
    free(text);
    bool written = fd_write_all(t->fd, line.data, line.len) == 0 && fdatasync(t->fd) == 0;
    buf_done(&line);
    return written;
}

static char *new_path(const char *dir)
{
    char stamp[32];
    unsigned salt = 0;
    time_t now = time(NULL);
    struct tm tm;

    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
    if (getrandom(&salt, sizeof(salt), 0) < 0)
        salt = (unsigned)getpid();
    return xasprintf("%s/%s-%06x" SUFFIX, dir, stamp, salt & 0xffffff);
}

int transcript_begin(struct transcript *t, json_t *about, struct err *e)
{
    cleanup_free char *dir = directory(e);

    *t = (struct transcript){.fd = -1};
    if (dir) {
        remove_old(dir);
        t->path = new_path(dir);
        t->fd = open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        if (t->fd < 0) {
            err_set(e, errno, "cannot make %s", t->path);
        } else if (flock(t->fd, LOCK_EX | LOCK_NB) < 0 || !write_line(t, about)) {
            err_set(e, errno, "cannot write %s", t->path);
            fd_close(&t->fd);
        }
    }
    json_decref(about);
    return t->fd < 0 ? -1 : 0;
}

bool transcript_add(struct transcript *t, const json_t *message)
{
    if (t->fd < 0 || write_line(t, message))
        return true;
    fd_close(&t->fd);
    return false;
}

void transcript_done(struct transcript *t)
{
    fd_close(&t->fd);
    free(t->path);
    t->path = NULL;
}

/* ---- going on ---- */

static char *newest(struct err *e)
{
    cleanup_free char *dir = directory(e);
    struct dirent **found;

    if (!dir)
        return NULL;
    int n = list(dir, &found);
    char *path = n > 0 ? xasprintf("%s/%s", dir, found[n - 1]->d_name) : NULL;
    free_list(found, n);
    if (!path)
        err_set(e, 0, "there is no conversation in %s to continue", dir);
    return path;
}

/* The next line as an object, and how many bytes it has; NULL: there is none that is whole. */
static json_t *next_line(FILE *f, char **line, size_t *size, off_t *ret_len)
{
    ssize_t len = getline(line, size, f);
    json_t *j =
        len > 0 && (*line)[len - 1] == '\n' ? json_loadb(*line, (size_t)len, 0, NULL) : NULL;

    *ret_len = len;
    if (json_is_object(j))
        return j;
    json_decref(j);
    return NULL;
}

static int take(struct transcript *t, FILE *f, json_t **ret_about, json_t **ret_talk, struct err *e)
{
    cleanup_free char *line = NULL;
    size_t size = 0;
    off_t good = 0, len;
    json_t *about = next_line(f, &line, &size, &len), *message;

    if (!about || !json_is_integer(json_object_get(about, "retort"))) {
        json_decref(about);
        return err_set(e, 0, "%s is not a conversation of retort's", t->path);
    }
    json_t *talk = json_array();
    for (good = len; (message = next_line(f, &line, &size, &len)); good += len)
        json_array_append_new(talk, message);
    if (len > 0 && ftruncate(t->fd, good) < 0) { /* what was being written when its process died */
        json_decref(about);
        json_decref(talk);
        return err_set(e, errno, "cannot write %s", t->path);
    }
    *ret_about = about;
    *ret_talk = talk;
    return 0;
}

static int open_again(struct transcript *t, json_t **ret_about, json_t **ret_talk, struct err *e)
{
    t->fd = open(t->path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (t->fd < 0)
        return err_set(e, errno, "cannot open %s", t->path);
    if (flock(t->fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, 0, "another retort goes on with %s", t->path);
    int copy = dup(t->fd);
    FILE *f = copy < 0 ? NULL : fdopen(copy, "r");
    if (!f)
        return err_set(e, errno, "cannot read %s", t->path);
    int result = take(t, f, ret_about, ret_talk, e);
    fclose(f);
    return result;
}

int transcript_continue(struct transcript *t, const char *path, json_t **ret_about,
                        json_t **ret_talk, struct err *e)
{
    *t = (struct transcript){.fd = -1, .path = path ? xstrdup(path) : newest(e)};
    if (!t->path)
        return -1;
    if (open_again(t, ret_about, ret_talk, e) == 0)
        return 0;
    transcript_done(t);
    return -1;
}
