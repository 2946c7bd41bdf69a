/* cgroup_ground: the place that all boxes' cgroups lie in; see cgroup.h. Made, and removed again, by the
 * starter of retort with the starter's rights, and given to the keeper. */
#include "box/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define PARENT "retort"
#define CLIENT "retort-client"

static const char *const v1_controllers[CGROUP_HIERARCHIES] = {
    [CGROUP_MEMORY] = "memory",
    [CGROUP_PIDS] = "pids",
    [CGROUP_CPUACCT] = "cpuacct",
    [CGROUP_CPU] = "cpu",
};
static const char *const v2_controllers = "+memory +pids +cpu";

/* ---- where the hierarchies are ---- */

struct mounts {
    char v1[CGROUP_HIERARCHIES][256];
    char v2[256];
};

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || strchr(", ", p[-1])) && strchr(", \n", p[n]))
            return true;
    return false;
}

/* One line of mountinfo: "36 35 0:31 / /sys/fs/cgroup/memory rw,… - cgroup cgroup rw,memory". */
static void note_mount(char *line, struct mounts *m)
{
    char *point, *type, *options, *save;

    char *dash = strstr(line, " - ");
    if (!dash)
        return;
    *dash = '\0';
    strtok_r(line, " ", &save);
    for (int i = 0; i < 3; i++)
        strtok_r(NULL, " ", &save);
    point = strtok_r(NULL, " ", &save);
    type = strtok_r(dash + 3, " ", &save);
    if (!type || !strtok_r(NULL, " ", &save))
        return;
    options = strtok_r(NULL, " \n", &save);
    if (!point || !options || strlen(point) >= sizeof(m->v2))
        return;
    if (strcmp(type, "cgroup2") == 0)
        strcpy(m->v2, point);
    if (strcmp(type, "cgroup") != 0)
        return;
    for (unsigned i = 0; i < CGROUP_HIERARCHIES; i++)
        if (has_word(options, v1_controllers[i]))
            strcpy(m->v1[i], point);
}

static int find_mounts(struct mounts *ret, struct err *e)
{
    cleanup_free char *line = NULL;
    size_t size = 0;

    *ret = (struct mounts){0};
    FILE *f = fopen("/proc/self/mountinfo", "re");
    if (!f)
        return err_set(e, errno, "cannot open /proc/self/mountinfo");
    while (getline(&line, &size, f) >= 0)
        note_mount(line, ret);
    fclose(f);
    return 0;
}

/* ---- the ground ---- */

static void new_name(char *ret, size_t size)
{
    uint64_t random = 0;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        bug("getrandom gives nothing");
    snprintf(ret, size, "%d-%08" PRIx64, getpid(), random & 0xffffffff);
}

/* Remove whatever an earlier keeper, killed on the spot, left behind. A living one holds a lock on
 * its directory; a directory with processes cannot be removed at all. */
static void remove_tree(int parent, const char *name)
{
    cleanup_fd int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return;
    DIR *d = fdopendir(dup(dir));
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            unlinkat(dir, entry->d_name, AT_REMOVEDIR);
    if (d)
        closedir(d);
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Is this open directory still the one of that name? Another retort may have removed it since, and its
 * owner made a new one: the lock on the old one says nothing of that. */
static bool is_named(int dir, int parent, const char *name)
{
    struct stat opened, named;

    return fstat(dir, &opened) == 0 && fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static void remove_stale(int parent)
{
    DIR *d = fdopendir(dup(parent));

    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        cleanup_fd int dir = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0 && is_named(dir, parent, entry->d_name))
            remove_tree(parent, entry->d_name);
    }
    if (d)
        closedir(d);
}

/* Where our directory goes: `where` itself, or …/retort in it. */
static int open_parent(const char *where, bool below, struct err *e)
{
    cleanup_fd int top = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return err_set(e, errno, "cannot open %s", where);
    if (!below)
        return fd_steal(&top);
    if (mkdirat(top, PARENT, 0755) < 0 && errno != EEXIST)
        return err_set(e, errno, "cannot make %s/%s", where, PARENT);
    int parent = openat(top, PARENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return parent < 0 ? err_set(e, errno, "cannot open %s/%s", where, PARENT) : parent;
}

/* The directory, locked: that says that we live (see remove_stale). ENOENT: another retort, at its
 * start or at its end, has taken it or its parent for left over. */
static int make_locked(int parent, const char *name, const char *where, struct err *e)
{
    struct stat st;

    if (mkdirat(parent, name, 0755) < 0)
        return err_set(e, errno, "cannot make a cgroup in %s", where);
    cleanup_fd int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set(e, errno, "cannot open the new cgroup in %s", where);
    while (flock(dir, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_set(e, errno, "cannot lock the new cgroup in %s", where);
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(e, errno, "cannot keep the new cgroup in %s", where);
    return fd_steal(&dir);
}

/* Our directory below `where`, in …/retort when we are root at the top of a hierarchy. */
static int make_ground_dir(struct cgroup_ground *g, const char *where, bool below_parent,
                           struct err *e)
{
    for (int tries = 0; tries < 100; tries++) {
        cleanup_fd int parent = open_parent(where, below_parent, e);
        if (parent >= 0 && below_parent && tries == 0)
            remove_stale(parent);
        cleanup_fd int dir = parent < 0 ? -1 : make_locked(parent, g->name, where, e);
        if (dir >= 0) {
            g->dirs[g->n_dirs] = fd_steal(&dir);
            g->parents[g->n_dirs++] = fd_steal(&parent);
            return 0;
        }
        if (!below_parent || e->code != ENOENT)
            return -1;
    }
    return -1;
}

static int give(int dir, const char *path, uid_t owner, struct err *e)
{
    if (fchownat(dir, path, owner, owner, AT_SYMLINK_NOFOLLOW | (*path ? 0 : AT_EMPTY_PATH)) < 0)
        return err_set(e, errno, "cannot give cgroup file \"%s\" to the keeper", path);
    return 0;
}

static int make_v1(const struct mounts *m, uid_t owner, struct cgroup_ground *g, struct err *e)
{
    if (!m->v1[CGROUP_MEMORY][0] || !m->v1[CGROUP_PIDS][0] || !m->v1[CGROUP_CPUACCT][0])
        return err_set(e, 0, "the host has no cgroup hierarchies with memory, pids and cpuacct");
    if (geteuid() != 0)
        return err_set(e, 0,
                       "cgroups of version 1 belong to root; boot with version 2 or run as root");
    g->shared_parent = true;
    for (unsigned i = 0; i < CGROUP_HIERARCHIES; i++) {
        g->has[i] = -1;
        for (unsigned k = 0; k < i; k++)
            if (strcmp(m->v1[i], m->v1[k]) == 0)
                g->has[i] = g->has[k]; /* cpu and cpuacct are often one */
        if (!m->v1[i][0] || g->has[i] >= 0)
            continue;
        g->has[i] = (int)g->n_dirs;
        if (make_ground_dir(g, m->v1[i], true, e) < 0)
            return -1;
        if (give(g->dirs[g->n_dirs - 1], "", owner, e) < 0)
            return -1;
    }
    g->version = 1;
    return 0;
}

static int own_cgroup(const char *mount, char *ret, size_t size, struct err *e)
{
    char text[4096];

    if (fd_get_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text), e) < 0)
        return -1;
    char *own = strstr(text, "0::");
    if (!own)
        return err_set(e, 0, "this process is in no cgroup of version 2");
    own += 3;
    own[strcspn(own, "\n")] = '\0';
    snprintf(ret, size, "%s%s", mount, strcmp(own, "/") == 0 ? "" : own);
    return 0;
}

static bool has_controllers(const char *dir)
{
    char path[600], text[512];
    struct err ignored;

    snprintf(path, sizeof(path), "%s/cgroup.controllers", dir);
    return fd_get_text(AT_FDCWD, path, text, sizeof(text), &ignored) == 0 &&
           has_word(text, "memory") && has_word(text, "pids");
}

/* Hand the controllers down. The cpu controller may be missing below user@.service: then only the
 * share of cores is not limited. */
static int hand_down(int dir, struct err *e)
{
    if (fd_put_text(dir, "cgroup.subtree_control", v2_controllers, e) == 0)
        return 0;
    return fd_put_text(dir, "cgroup.subtree_control", "+memory +pids", e);
}

/* Version 2 has no processes in inner nodes: whoever starts us steps into a leaf first. */
static int step_aside(int own, struct err *e)
{
    char pid[32];

    if (mkdirat(own, CLIENT, 0755) < 0 && errno != EEXIST)
        return err_set(e, errno, "cannot make a cgroup in our own");
    snprintf(pid, sizeof(pid), "%d", getpid());
    return fd_put_text(own, CLIENT "/cgroup.procs", pid, e);
}

/* And back, which leaves the cgroup that was delegated to us as it was. What fails here fails rightly:
 * another process of ours may still be in the leaf, and clears up in its turn. */
static void step_back(int own)
{
    char pid[32];
    struct err ignored;

    snprintf(pid, sizeof(pid), "%d", getpid());
    fd_put_text(own, "cgroup.subtree_control", "-memory -pids -cpu", &ignored);
    fd_put_text(own, "cgroup.procs", pid, &ignored);
    unlinkat(own, CLIENT, AT_REMOVEDIR);
}

/* The ground below `where`: a cgroup that was delegated to us and that we are in, or the top. */
static int make_v2_in(const char *where, bool delegated, uid_t owner, struct cgroup_ground *g,
                      struct err *e)
{
    static const char *const given[] = {"", "cgroup.procs", "cgroup.subtree_control", "keeper",
                                        "keeper/cgroup.procs"};

    cleanup_fd int top = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return err_set(e, errno, "cannot open %s", where);
    if (delegated && step_aside(top, e) < 0)
        return -1;
    if (hand_down(top, e) < 0) {
        if (delegated)
            step_back(top);
        if (delegated && e->code == EBUSY)
            return err_set(e, 0,
                           "other processes are in the cgroup of this one; start retort in one of "
                           "its own, under \"systemd-run --user --scope -p Delegate=yes\"");
        return err_wrap(e, "cannot enable the cgroup controllers");
    }
    g->shared_parent = !delegated;
    g->stepped_aside = delegated;
    if (make_ground_dir(g, where, !delegated, e) < 0) {
        if (delegated && g->n_dirs == 0)
            step_back(top);
        return -1;
    }
    if (!delegated && hand_down(g->parents[0], e) < 0)
        return -1;
    if (hand_down(g->dirs[0], e) < 0)
        return -1;
    if (mkdirat(g->dirs[0], "keeper", 0755) < 0)
        return err_set(e, errno, "cannot make the keeper's cgroup");
    for (size_t i = 0; owner != geteuid() && i < sizeof(given) / sizeof(*given); i++)
        if (give(g->dirs[0], given[i], owner, e) < 0)
            return -1;
    g->version = 2;
    return 0;
}

static int make_v2(const struct mounts *m, uid_t owner, struct cgroup_ground *g, struct err *e)
{
    char own[512];
    bool root = geteuid() == 0;

    if (!m->v2[0] || !has_controllers(m->v2))
        return err_set(e, 0, "the host has no cgroups of version 2 with memory and pids");
    if (own_cgroup(m->v2, own, sizeof(own), e) < 0)
        return -1;
    /* Under a service manager that delegated a subtree to us we stay in it. Whether root's was, cannot
     * be seen, only tried: every process below a service has the variable, and may not be alone. */
    bool delegated = strcmp(own, m->v2) != 0 && has_controllers(own) &&
                     (root ? getenv("INVOCATION_ID") != NULL : access(own, W_OK) == 0);
    if (delegated && make_v2_in(own, true, owner, g, e) == 0)
        return 0;
    if (!root)
        return delegated ? -1
                         : err_set(e, 0,
                                   "no cgroup was delegated to this user; start it under "
                                   "\"systemd-run --user --scope -p Delegate=yes\"");
    cgroup_ground_remove(g);
    return make_v2_in(m->v2, false, owner, g, e);
}

void cgroup_ground_make(uid_t owner, struct cgroup_ground *ret, struct err *e)
{
    struct mounts m;
    struct err v2;

    *ret = (struct cgroup_ground){0};
    new_name(ret->name, sizeof(ret->name));
    if (find_mounts(&m, e) < 0)
        return;
    if (make_v2(&m, owner, ret, &v2) == 0)
        return;
    cgroup_ground_remove(ret);
    if (make_v1(&m, owner, ret, e) == 0)
        return;
    cgroup_ground_remove(ret);
    if (!m.v1[0][0])
        *e = v2; /* a host with version 2: its reason is the one to tell */
}

int cgroup_ground_enter(const struct cgroup_ground *g, pid_t pid, struct err *e)
{
    char text[32];

    if (g->version != 2)
        return 0;
    snprintf(text, sizeof(text), "%d", pid);
    return fd_put_text(g->dirs[0], "keeper/cgroup.procs", text, e);
}

void cgroup_ground_close(struct cgroup_ground *g)
{
    for (unsigned i = 0; i < g->n_dirs; i++) {
        fd_close(&g->dirs[i]);
        fd_close(&g->parents[i]);
    }
    g->n_dirs = 0;
}

void cgroup_ground_remove(struct cgroup_ground *g)
{
    for (unsigned i = 0; i < g->n_dirs; i++) {
        remove_tree(g->parents[i], g->name);
        if (g->shared_parent) {
            /* Fails, rightly, while another retort has its ground there. */
            cleanup_fd int above = openat(g->parents[i], "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            unlinkat(above, PARENT, AT_REMOVEDIR);
        }
        if (g->stepped_aside)
            step_back(g->parents[i]);
    }
    cgroup_ground_close(g);
    g->version = 0;
}
