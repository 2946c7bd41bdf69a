/* environment: see environment.h. */
#include "cli/environment.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/home.h"
#include "base/keyvalue.h"

#define LINKS_MAX 16
#define CONF_SIZE (64 << 10)

void environment_done(struct environment *env)
{
    free(env->name);
    free(env->python);
    free(env->preload);
    free(env->wheels);
    for (unsigned i = 0; i < ENVIRONMENT_PATHS; i++)
        free(env->paths[i]);
    *env = (struct environment){0};
}

/* ---- which paths may be shown ---- */

/* Is `path` this directory, or in it? */
static bool lies_in(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    if (strcmp(dir, "/") == 0)
        return path[0] == '/';
    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* May this directory be shown to guests? 0, or -1 with a reason. */
static int check_path(const char *path, struct err *e)
{
    static const char *const never[] = {"/proc", "/sys", "/dev"}; /* nor anything in them */
    static const char *const whole[] = {
        "/",    "/home", "/root", "/etc",   "/var",     "/run",     "/tmp",     "/boot",
        "/mnt", "/srv",  "/opt",  "/media", "/var/lib", "/var/run", "/var/tmp", "/mnt/data",
    };
    const char *home = home_directory();

    if (path[0] != '/')
        return err_set(e, 0, "%s is not an absolute path", path);
    for (unsigned i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        if (lies_in(path, never[i]))
            return err_set(e, 0, "%s cannot be shown to a box: the box has its own %s", path,
                           never[i]);
    }
    for (unsigned i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        if (strcmp(path, whole[i]) == 0)
            return err_set(e, 0,
                           "%s as a whole cannot be shown to a box: name the directory of "
                           "the environment itself",
                           path);
    }
    bool some_home = strncmp(path, "/home/", 6) == 0 && !strchr(path + 6, '/');
    if (some_home || (home && home[1] && lies_in(home, path)))
        return err_set(e, 0,
                       "%s holds a person's files and cannot be shown to a box as a whole: "
                       "name the directory of the environment itself",
                       path);
    return 0;
}

/* It is a directory, and where it really lies may be shown too. */
static int check_directory(const char *path, struct stat *ret, struct err *e)
{
    char real[PATH_MAX];

    if (!realpath(path, real) || stat(real, ret) < 0)
        return err_set(e, errno, "cannot see %s", path);
    if (!S_ISDIR(ret->st_mode))
        return err_set(e, 0, "%s is not a directory", path);
    if (!lies_in(real, "/usr") && check_path(real, e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}

static char *without_slashes(const char *path)
{
    char *clean = xstrdup(path);

    for (size_t len = strlen(clean); len > 1 && clean[len - 1] == '/'; len--)
        clean[len - 1] = '\0';
    return clean;
}

/* Add a directory, unless it is there already or lies in /usr, which every box sees. */
static int add_path(struct environment *env, const char *path, struct err *e)
{
    cleanup_free char *clean = without_slashes(path);
    struct stat st;
    unsigned n = 0;

    if (lies_in(clean, "/usr"))
        return 0;
    if (check_path(clean, e) < 0)
        return -1;
    for (; env->paths[n]; n++) {
        if (lies_in(clean, env->paths[n]))
            return 0;
    }
    if (n == ENVIRONMENT_PATHS)
        return err_set(e, 0, "an environment may name at most %d paths", ENVIRONMENT_PATHS);
    if (check_directory(clean, &st, e) < 0)
        return -1;
    env->paths[n] = xstrdup(clean);
    return 0;
}

static int set_wheels(struct environment *env, const char *path, struct err *e)
{
    cleanup_free char *clean = without_slashes(path);
    struct stat st;

    if (clean[0] != '/')
        return err_set(e, 0, "wheels = %s: write an absolute path", clean);
    if (check_directory(clean, &st, e) < 0)
        return err_wrap(e, "wheels");
    /* A box of root's has a uid of its own. */
    if (geteuid() == 0 && (st.st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH))
        return err_set(e, 0, "wheels: everybody must be allowed to read %s (chmod -R a+rX)", clean);
    free(env->wheels);
    env->wheels = xstrdup(clean);
    return 0;
}

/* ---- where an interpreter lives ---- */

/* Cut the last component off, in place: "/a/b" → "/a" → "/". */
static char *parent(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash == path)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    return path;
}

/* PREFIX/bin/python3 needs all of PREFIX: both as it is written, and where that really is. */
static int add_prefix_of(struct environment *env, const char *python, struct err *e)
{
    cleanup_free char *prefix = xstrdup(python);
    char real[PATH_MAX];

    parent(prefix);
    const char *base = strrchr(prefix, '/');
    if (base && (strcmp(base, "/bin") == 0 || strcmp(base, "/sbin") == 0))
        parent(prefix);
    if (!realpath(prefix, real))
        return err_set(e, errno, "cannot find %s, where the interpreter should be", prefix);
    /* /bin is /usr/bin nowadays, in the box too. */
    if (strcmp(prefix, "/") == 0)
        return 0;
    if (strcmp(prefix, real) != 0 && add_path(env, prefix, e) < 0)
        return -1;
    return add_path(env, real, e);
}

/* A venv says in pyvenv.cfg where the interpreter is that it was made from: "home = DIR/bin". */
static int add_venv_home(struct environment *env, const char *python, struct err *e)
{
    cleanup_free char *prefix = xstrdup(python);
    char text[8192];
    struct err ignored;

    parent(parent(prefix));
    cleanup_free char *cfg = xasprintf("%s/pyvenv.cfg", prefix);
    if (fd_get_text(AT_FDCWD, cfg, text, sizeof(text), &ignored) < 0)
        return 0; /* not a venv */
    char *save = NULL;
    for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
        char home[PATH_MAX];
        if (sscanf(line, " home = %4095[^\n]", home) != 1 || home[0] != '/')
            continue;
        cleanup_free char *base = xasprintf("%s/python3", home);
        return add_prefix_of(env, base, e);
    }
    return 0;
}

/* Follow the interpreter's links by hand: each place on the way must exist in the box. */
static int add_interpreter(struct environment *env, struct err *e)
{
    cleanup_free char *at = xstrdup(env->python);

    for (unsigned i = 0; i < LINKS_MAX; i++) {
        char target[PATH_MAX];
        if (add_prefix_of(env, at, e) < 0 || add_venv_home(env, at, e) < 0)
            return -1;
        ssize_t n = readlink(at, target, sizeof(target) - 1);
        if (n < 0 && errno == EINVAL)
            return 0; /* the interpreter itself */
        if (n < 0)
            return err_set(e, errno, "cannot follow %s", at);
        target[n] = '\0';
        char *next = target[0] == '/' ? xstrdup(target) : xasprintf("%s/%s", parent(at), target);
        free(at);
        at = next;
    }
    return err_set(e, ELOOP, "%s", env->python);
}

static int set_python(struct environment *env, const char *python, struct err *e)
{
    if (python[0] != '/')
        return err_set(e, 0, "python = %s: write an absolute path", python);
    if (access(python, X_OK) < 0)
        return err_set(e, errno, "there is no interpreter at %s", python);
    free(env->python);
    env->python = xstrdup(python);
    return 0;
}

/* ---- a prefix on the command line ---- */

static int load_prefix(const char *path, struct environment *env, struct err *e)
{
    char real[PATH_MAX];

    if (!realpath(path, real))
        return err_set(e, errno, "there is no environment at %s", path);
    if (!lies_in(real, "/usr") && check_path(real, e) < 0)
        return -1;
    cleanup_free char *python = xasprintf("%s/bin/python3", real);
    cleanup_free char *plain = xasprintf("%s/bin/python", real);
    bool has_python3 = access(python, X_OK) == 0;
    if (!has_python3 && access(plain, X_OK) < 0)
        return err_set(e, 0,
                       "%s is not a Python environment: it has no bin/python3 (make one with "
                       "\"python3 -m venv %s\")",
                       path, path);
    if (set_python(env, has_python3 ? python : plain, e) < 0)
        return -1;
    return add_interpreter(env, e);
}

/* ---- a file ---- */

/* "~/venv" as people write it in their own configuration. */
static char *expand_home(const char *word)
{
    const char *home = home_directory();

    return word[0] == '~' && word[1] == '/' && home ? xasprintf("%s%s", home, word + 1)
                                                    : xstrdup(word);
}

static int set_paths(struct environment *env, char *value, struct err *e)
{
    char *save = NULL;

    for (char *word = strtok_r(value, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
        cleanup_free char *path = expand_home(word);
        if (add_path(env, path, e) < 0)
            return -1;
    }
    return 0;
}

static int set_preload(struct environment *env, const char *value, struct err *e)
{
    for (const char *p = value; *p; p++) {
        if (!isalnum((unsigned char)*p) && !strchr("_. \t", *p) && !((unsigned char)*p & 0x80))
            return err_set(e, 0,
                           "preload: \"%c\" cannot be in a module's name; separate them by "
                           "blanks",
                           *p);
    }
    free(env->preload);
    env->preload = xstrdup(value);
    return 0;
}

static int set_key(void *ctx, unsigned line, const char *key, char *value, struct err *e)
{
    struct environment *env = ctx;
    (void)line;

    if (strcmp(key, "python") == 0) {
        cleanup_free char *python = expand_home(value);
        return set_python(env, python, e);
    }
    if (strcmp(key, "paths") == 0)
        return set_paths(env, value, e);
    if (strcmp(key, "preload") == 0)
        return set_preload(env, value, e);
    if (strcmp(key, "wheels") == 0) {
        cleanup_free char *wheels = expand_home(value);
        return set_wheels(env, wheels, e);
    }
    return err_set(e, 0, "there is no key \"%s\": python, paths, preload and wheels are known",
                   key);
}

static int load_file(const char *file, char *text, struct environment *env, struct err *e)
{
    if (keyvalue_each(file, text, set_key, env, e) < 0)
        return -1;
    if (!env->python)
        return err_set(e, 0, "%s: the line \"python = …\" is missing", file);
    return add_interpreter(env, e) < 0 ? err_wrap(e, "%s", file) : 0;
}

static int load_name(const char *name, struct environment *env, struct err *e)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = home_directory();
    cleanup_free char *own =
        xdg && xdg[0] == '/'
            ? xasprintf("%s/retort/environments/%s.conf", xdg, name)
            : xasprintf("%s/.config/retort/environments/%s.conf", home ? home : "", name);
    cleanup_free char *host = xasprintf("/etc/retort/environments/%s.conf", name);
    const char *files[] = {own, host};
    cleanup_free char *text = xcalloc(1, CONF_SIZE);

    for (unsigned i = 0; i < 2; i++) {
        if (fd_get_text(AT_FDCWD, files[i], text, CONF_SIZE, e) == 0)
            return load_file(files[i], text, env, e);
        if (e->code != ENOENT && e->code != ENOTDIR)
            return -1;
    }
    return err_set(e, 0,
                   "there is no environment \"%s\": neither %s nor %s exists (a path needs a "
                   "slash: ./%s)",
                   name, own, host, name);
}

static bool is_name(const char *text)
{
    return text[0] && text[0] != '.' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               strlen(text);
}

static int load(const char *name_or_path, struct environment *env, struct err *e)
{
    if (strcmp(name_or_path, "default") == 0)
        return set_python(env, "/usr/bin/python3", e);
    if (strchr(name_or_path, '/'))
        return load_prefix(name_or_path, env, e);
    if (is_name(name_or_path))
        return load_name(name_or_path, env, e);
    return err_set(e, 0, "\"%s\" is neither a name nor a path of an environment", name_or_path);
}

/* From a command line: relative to where it was typed. */
static int set_wheels_given(struct environment *env, const char *path, struct err *e)
{
    char real[PATH_MAX];

    if (!realpath(path, real))
        return err_set(e, errno, "wheels: cannot see %s", path);
    return set_wheels(env, real, e);
}

int environment_load(const char *name_or_path, const char *preload, const char *wheels,
                     struct environment *ret, struct err *e)
{
    struct environment env = {.name = xstrdup(name_or_path)};
    int r = set_preload(&env, preload, e) < 0 ? -1 : load(name_or_path, &env, e);

    if (r == 0 && wheels && !env.wheels)
        r = set_wheels_given(&env, wheels, e);
    if (r < 0) {
        environment_done(&env);
        return -1;
    }
    *ret = env;
    return 0;
}
