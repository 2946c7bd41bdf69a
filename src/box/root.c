/* root: see root.h. The first half runs in the keeper before its first message, the second in init
 * and in the zygote. All of it is inside a user namespace: not one mount here touches the host. */
#include "box/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/mount.h>

#include "base/buf.h"
#include "base/fd.h"
#include "box/copy.h"
#include "box/fonts.h"
#include "box/mounts.h"

/* Where the new view is built: every host has it, and no environment lies below it. */
#define STAGE "/sys"

/* Of the host's /etc only what libraries read to find fonts, codecs and each other. */
static const char *const etc_copied[] = {
    "ImageMagick-6", "alternatives", "debian_version", "fonts",       "java-17-openjdk",
    "ld.so.cache",   "ld.so.conf",   "ld.so.conf.d",   "libreoffice", "locale.alias",
    "magic",         "magic.mime",   "matplotlibrc",   "mime.types",  "os-release",
    "papersize",     "perl",         "protocols",      "python3",     "python3.11",
    "python3.12",    "python3.13",   "services",       "xdg",
};

static const struct {
    const char *path, *text;
} etc_written[] = {
    {"etc/passwd", "user:x:1000:1000:user:/home/user:/bin/bash\n"
                   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/group", "user:x:1000:\nnogroup:x:65534:\n"},
    {"etc/hosts", "127.0.0.1 localhost retort\n::1 localhost\n"},
    {"etc/hostname", "retort\n"},
    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    {"etc/resolv.conf", "# There is no network here.\n"},
};

/* What is known of the host's fonts. Without it the first program in each box that draws text would read all of
 * them, which takes half a second. */
#define FONT_CACHE "/var/cache/fontconfig"

/* Fonts made of coloured pictures (the usual emoji) have no outlines: LibreOffice takes one for a character that
 * its own font lacks, and for those around it too, and then draws nothing. Others have most of them in black. */
#define FONT_RULES "/etc/fonts/conf.d"
static const char font_rule[] =
    "<?xml version=\"1.0\"?>\n<!DOCTYPE fontconfig SYSTEM \"urn:fontconfig:fonts.dtd\">\n"
    "<fontconfig><selectfont><rejectfont><pattern><patelt name=\"color\"><bool>true</bool></patelt>"
    "</pattern></rejectfont></selectfont></fontconfig>\n";

/* Every way into LibreOffice leads through this program. Without a screen all that it does is to start
 * soffice.bin, and again when that asks for it, as it does when it has made a new profile (81), or restored
 * something (79). But first it looks for /proc/version, and gives up where /proc shows processes only. */
#define OFFICE_STARTER "/usr/lib/libreoffice/program/oosplash"
static const char office_starter[] = "#!/bin/sh\n"
                                     "while :; do\n"
                                     "    \"${0%/*}/soffice.bin\" \"$@\"\n"
                                     "    status=$?\n"
                                     "    case $status in 79 | 81) ;; *) exit $status ;; esac\n"
                                     "done\n";

/* clang-format off */
static const char *const skeleton_dirs[] = {
    "dev", "dev/shm", "etc", "home", "home/user", "mnt", "mnt/data", "opt", "opt/retort",
    "opt/retort/bin", "proc", "run", "tmp", "usr", "var", "var/cache",
};
/* clang-format on */

static const char *const device_names[] = {"full", "null", "random", "urandom", "zero"};

static const char *const system_dirs[] = {"bin", "lib", "lib32", "lib64", "libx32", "sbin"};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- the keeper's view ---- */

static int make_dir(const char *path, struct err *e)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_set(e, errno, "cannot make directory %s", path);
    return 0;
}

/* mkdir -p below `base`. */
static int make_dirs(const char *base, const char *path, struct err *e)
{
    char at[PATH_MAX];
    size_t n = (size_t)snprintf(at, sizeof(at), "%s", base);

    while (*path) {
        size_t part = strcspn(path + 1, "/") + 1;
        if (n + part >= sizeof(at))
            return err_set(e, ENAMETOOLONG, "%s%s", base, path);
        memcpy(at + n, path, part);
        at[n += part] = '\0';
        if (make_dir(at, e) < 0)
            return -1;
        path += part;
    }
    return 0;
}

static int make_file(const char *path, const char *text, struct err *e)
{
    cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
        return err_set(e, errno, "cannot write %s", path);
    return 0;
}

static int make_link(const char *target, const char *path, struct err *e)
{
    if (symlink(target, path) < 0)
        return err_set(e, errno, "cannot make the link %s", path);
    return 0;
}

/* Show one directory or device of the host. Recursive, because what the host has mounted below it is
 * locked to it in our user namespace; then read-only. */
static int bind_read_only(const char *from, const char *to, struct err *e)
{
    if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
        return err_set(e, errno, "cannot bind %s", from);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
    if (syscall(SYS_mount_setattr, AT_FDCWD, to, AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return err_set(e, errno, "cannot make the view of %s read-only", from);
    return 0;
}

int root_begin(const struct root_source *s, struct root_view *ret, struct err *e)
{
    static const char *const dirs[] = {"/env", "/empty", "/box", "/proc", "/dev"};

    *ret = (struct root_view){.device_sets = s->device_sets_fd >= 0};
    /* Nothing that we mount may travel back to the host. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_set(e, errno, "cannot make the mounts private");
    if (mount("retort", STAGE, "tmpfs", MS_NOSUID, "mode=755") < 0)
        return err_set(e, errno, "cannot mount a tmpfs");
    for (size_t i = 0; i < COUNT(dirs); i++)
        if (make_dirs(STAGE, dirs[i], e) < 0)
            return -1;
    return 0;
}

static int fill_etc(const char *skeleton, struct err *e)
{
    char from[PATH_MAX], to[PATH_MAX];

    for (size_t i = 0; i < COUNT(etc_copied); i++) {
        snprintf(from, sizeof(from), "/etc/%s", etc_copied[i]);
        snprintf(to, sizeof(to), "%s/etc/%s", skeleton, etc_copied[i]);
        if (copy_tree(from, to, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < COUNT(etc_written); i++) {
        snprintf(to, sizeof(to), "%s/%s", skeleton, etc_written[i].path);
        if (make_file(to, etc_written[i].text, e) < 0)
            return -1;
    }
    return 0;
}

/* What fonts there are, and which of them are of use. */
static int fill_fonts(const char *skeleton, struct err *e)
{
    char to[PATH_MAX];

    snprintf(to, sizeof(to), "%s" FONT_CACHE, skeleton);
    if (fonts_copy_caches(FONT_CACHE, to, e) < 0)
        return -1;
    snprintf(to, sizeof(to), "%s" FONT_RULES, skeleton);
    if (access(to, F_OK) < 0)
        return 0;
    snprintf(to, sizeof(to), "%s" FONT_RULES "/99-retort.conf", skeleton);
    return make_file(to, font_rule, e);
}

/* What is to be seen instead of a file of the host's /usr: see mount_lowers(). */
static int fill_office(const char *skeleton, struct err *e)
{
    char to[PATH_MAX];
    char *real = realpath(OFFICE_STARTER, NULL);
    bool is_there = real && strcmp(real, OFFICE_STARTER) == 0;

    free(real);
    if (!is_there)
        return 0;
    snprintf(to, sizeof(to), "%s" OFFICE_STARTER, skeleton);
    *strrchr(to, '/') = '\0';
    if (make_dirs("", to, e) < 0)
        return -1;
    snprintf(to, sizeof(to), "%s" OFFICE_STARTER, skeleton);
    if (make_file(to, office_starter, e) < 0)
        return -1;
    if (chmod(to, 0755) < 0)
        return err_set(e, errno, "cannot make %s executable", to);
    return 0;
}

/* By name: a build directory has other things beside them. */
static int fill_runner(const struct root_source *s, const char *skeleton, struct err *e)
{
    static const char *const parts[] = {"boot.py", "_retort.abi3.so", "retort_kernel"};
    char from[64], to[PATH_MAX];

    for (size_t i = 0; i < COUNT(parts); i++) {
        snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", s->runner_fd, parts[i]);
        snprintf(to, sizeof(to), "%s/opt/retort/%s", skeleton, parts[i]);
        if (copy_tree(from, to, e) < 0)
            return -1;
        if (access(to, R_OK) < 0)
            return err_set(e, errno,
                           "cannot read %s/%s: everybody must be allowed to (chmod -R a+rX)",
                           s->runner, parts[i]);
    }
    /* Debian has no "python", which programs call all the same. The runner puts it into the PATH. */
    snprintf(to, sizeof(to), "%s/opt/retort/bin/python", skeleton);
    return make_link("/usr/bin/python3", to, e);
}

/* /dev as a box sees it: links, and empty files for the devices to be bound over. */
static int fill_dev(const char *skeleton, struct err *e)
{
    static const struct {
        const char *name, *target;
    } links[] = {{"fd", "/proc/self/fd"},
                 {"stdin", "/proc/self/fd/0"},
                 {"stdout", "/proc/self/fd/1"},
                 {"stderr", "/proc/self/fd/2"}};
    char path[PATH_MAX];

    for (size_t i = 0; i < COUNT(links); i++) {
        snprintf(path, sizeof(path), "%s/dev/%s", skeleton, links[i].name);
        if (make_link(links[i].target, path, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < COUNT(device_names); i++) {
        snprintf(path, sizeof(path), "%s/dev/%s", skeleton, device_names[i]);
        if (make_file(path, "", e) < 0)
            return -1;
    }
    return 0;
}

/* A venv in /tmp would vanish under the box's own /tmp: such ones are mounted after it. */
static bool is_covered(const char *path)
{
    static const char *const places[] = {"/tmp/", "/var/tmp/", "/home/user/", "/mnt/data/",
                                         "/dev/shm/"};

    for (size_t i = 0; i < COUNT(places); i++)
        if (strncmp(path, places[i], strlen(places[i])) == 0)
            return true;
    return false;
}

/* One read-only directory of the host, and the place for it in the skeleton. */
static int add_lower(struct root_view *v, unsigned env, const char *skeleton, const char *path,
                     const char *from, struct err *e)
{
    char to[PATH_MAX];
    unsigned n = v->environments[env].n_lowers;

    if (n == ROOT_LOWERS)
        return err_set(e, E2BIG, "an environment has more than %d directories", ROOT_LOWERS);
    if (strpbrk(path, ":,\\"))
        return err_set(e, EINVAL, "%s: a path with ':', ',' or '\\' cannot be shown", path);
    if (!is_covered(path) && make_dirs(skeleton, path, e) < 0)
        return -1;
    snprintf(to, sizeof(to), STAGE "/env/%u/%u", env, n);
    if (make_dir(to, e) < 0 || bind_read_only(from, to, e) < 0)
        return err_wrap(e, "%s", path);
    v->environments[env].lowers[v->environments[env].n_lowers++] = xstrdup(path);
    return 0;
}

static int add_tree(struct root_view *v, unsigned env, const char *skeleton, const char *path,
                    const char *from, struct err *e);

/* The parts of a directory, each for itself. Files that lie beside them are not shown. */
static int add_parts(struct root_view *v, unsigned env, const char *skeleton, const char *path,
                     const char *from, struct err *e)
{
    char part[PATH_MAX], part_from[PATH_MAX], to[PATH_MAX], target[PATH_MAX];
    int result = make_dirs(skeleton, path, e);

    DIR *d = result == 0 ? opendir(from) : NULL;
    if (result == 0 && !d)
        return err_set(e, errno, "cannot read %s", path);
    for (struct dirent *entry; result == 0 && (entry = readdir(d));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (snprintf(part, PATH_MAX, "%s/%s", path, entry->d_name) >= PATH_MAX ||
            snprintf(part_from, PATH_MAX, "%s/%s", from, entry->d_name) >= PATH_MAX ||
            snprintf(to, PATH_MAX, "%s%s", skeleton, part) >= PATH_MAX) {
            result = err_set(e, ENAMETOOLONG, "%s/%s", path, entry->d_name);
            break;
        }
        struct stat st;
        ssize_t n = readlink(part_from, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        if (n > 0)
            result = make_link(target, to, e);
        else if (stat(part_from, &st) == 0 && S_ISDIR(st.st_mode))
            result = add_tree(v, env, skeleton, part, part_from, e);
    }
    if (d)
        closedir(d);
    return result < 0 ? err_wrap(e, "something is mounted below %s", path) : 0;
}

/* One read-only directory of the host, with what is mounted below it: /usr/local may be a disk of its own. Such
 * a mount is locked to the one it lies on, and an overlay takes no directory with a locked mount below it: then
 * there is one for each part. */
static int add_tree(struct root_view *v, unsigned env, const char *skeleton, const char *path,
                    const char *from, struct err *e)
{
    char real[PATH_MAX];
    bool below = false;

    cleanup_fd int fd = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, errno, "cannot open %s", path);
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, real, sizeof(real) - 1);
    real[n > 0 ? n : 0] = '\0';
    if (!is_covered(path) && mounts_below(real, &below, e) < 0)
        return -1;
    return below ? add_parts(v, env, skeleton, path, from, e)
                 : add_lower(v, env, skeleton, path, from, e);
}

/* /bin, /lib and so on: links into /usr nearly everywhere, directories on older hosts. */
static int add_system_dirs(struct root_view *v, unsigned env, const char *skeleton, struct err *e)
{
    char path[PATH_MAX], to[PATH_MAX], target[PATH_MAX];

    for (size_t i = 0; i < COUNT(system_dirs); i++) {
        snprintf(path, sizeof(path), "/%s", system_dirs[i]);
        snprintf(to, sizeof(to), "%s/%s", skeleton, system_dirs[i]);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n >= 0) {
            target[n] = '\0';
            if (make_link(target, to, e) < 0)
                return -1;
        } else if (errno == EINVAL && add_tree(v, env, skeleton, path, path, e) < 0) {
            return -1;
        }
    }
    return add_tree(v, env, skeleton, "/usr", "/usr", e);
}

/* A directory of the host that is open as `fd`, to be seen in the box as `path`. */
static int add_opened(struct root_view *v, unsigned env, const char *skeleton, const char *path,
                      int fd, struct err *e)
{
    char from[64];

    if (fd < 0)
        return err_set(e, -fd, "cannot open %s", path);
    snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    return add_tree(v, env, skeleton, path, from, e);
}

int root_add_environment(struct root_view *v, const struct root_source *s, char *const *paths,
                         const int *fds, const int *wheels, struct err *e)
{
    char skeleton[64], path[PATH_MAX];
    unsigned env = v->n_environments;

    if (env == ROOT_ENVIRONMENTS)
        return err_set(e, E2BIG, "more than %d environments", ROOT_ENVIRONMENTS);
    snprintf(skeleton, sizeof(skeleton), STAGE "/env/%u", env);
    if (make_dir(skeleton, e) < 0)
        return -1;
    snprintf(skeleton, sizeof(skeleton), STAGE "/env/%u/skeleton", env);
    if (make_dir(skeleton, e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(skeleton_dirs); i++) {
        snprintf(path, sizeof(path), "%s/%s", skeleton, skeleton_dirs[i]);
        if (make_dir(path, e) < 0)
            return -1;
    }
    if (fill_etc(skeleton, e) < 0 || fill_fonts(skeleton, e) < 0 || fill_office(skeleton, e) < 0 ||
        fill_dev(skeleton, e) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/var/tmp", skeleton);
    if (make_link("../tmp", path, e) < 0)
        return -1;
    if (fill_runner(s, skeleton, e) < 0 || add_system_dirs(v, env, skeleton, e) < 0)
        return -1;
    for (; *paths; paths++, fds++)
        if (add_opened(v, env, skeleton, *paths, *fds, e) < 0)
            return -1;
    if (wheels && add_opened(v, env, skeleton, ROOT_WHEELS, *wheels, e) < 0)
        return -1;
    v->n_environments++;
    return 0;
}

/* The host's harmless devices, for boxes without a set of their own. */
static int show_devices(struct err *e)
{
    char from[64], to[64];

    for (size_t i = 0; i < COUNT(device_names); i++) {
        snprintf(from, sizeof(from), "/dev/%s", device_names[i]);
        snprintf(to, sizeof(to), STAGE "/dev/%s", device_names[i]);
        if (make_file(to, "", e) < 0 || bind_read_only(from, to, e) < 0)
            return -1;
    }
    return 0;
}

int root_finish(struct root_view *v, const struct root_source *s, struct err *e)
{
    if (v->device_sets && syscall(SYS_move_mount, s->device_sets_fd, "", AT_FDCWD, STAGE "/dev",
                                  MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_set(e, errno, "cannot show the device nodes");
    if (!v->device_sets && show_devices(e) < 0)
        return -1;
    /* Shows the keeper's own pid namespace only. */
    if (mount("proc", STAGE "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_set(e, errno, "cannot mount /proc");
    if (chdir(STAGE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return err_set(e, errno, "cannot leave the host's root");
    return 0;
}

/* ---- a box's root ---- */

/* A view of `upper` over `lower`, with inodes of its own. Two layers are the least that overlayfs takes. */
static int mount_overlay(const char *upper, const char *lower, const char *to, struct err *e)
{
    char options[2 * PATH_MAX];

    snprintf(options, sizeof(options), "lowerdir=%s:%s", upper, lower);
    if (mount("overlay", to, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOATIME, options) < 0)
        return err_set(e, errno, "cannot mount an overlay for %s", to + strlen(ROOT_BOX));
    return 0;
}

/* Each with what the skeleton has in its place on top: mostly an empty directory. */
static int mount_lowers(const struct root_view *v, unsigned environment, bool covered,
                        struct err *e)
{
    char upper[PATH_MAX], lower[64], to[PATH_MAX];

    for (unsigned i = 0; i < v->environments[environment].n_lowers; i++) {
        const char *path = v->environments[environment].lowers[i];
        if (is_covered(path) != covered)
            continue;
        snprintf(lower, sizeof(lower), "/env/%u/%u", environment, i);
        snprintf(to, sizeof(to), ROOT_BOX "%s", path);
        if (covered && make_dirs(ROOT_BOX, path, e) < 0)
            return -1;
        snprintf(upper, sizeof(upper), "/env/%u/skeleton%s", environment, path);
        if (mount_overlay(covered ? "/empty" : upper, lower, to, e) < 0)
            return -1;
    }
    return 0;
}

int root_mount_system(const struct root_view *v, unsigned environment, struct err *e)
{
    char lower[64];

    snprintf(lower, sizeof(lower), "/env/%u/skeleton", environment);
    if (mount_overlay(lower, "/empty", ROOT_BOX, e) < 0)
        return -1;
    return mount_lowers(v, environment, false, e);
}

int root_mount_covered(const struct root_view *v, unsigned environment, struct err *e)
{
    return mount_lowers(v, environment, true, e);
}

#define ASIDE "/run"

static bool covers_any(const struct root_view *v, unsigned environment)
{
    for (unsigned i = 0; i < v->environments[environment].n_lowers; i++)
        if (is_covered(v->environments[environment].lowers[i]))
            return true;
    return false;
}

int root_save_covered(const struct root_view *v, unsigned environment, struct err *e)
{
    char to[64];

    if (!covers_any(v, environment))
        return 0;
    if (mount("tmpfs", ASIDE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
        return err_set(e, errno, "cannot mount a tmpfs");
    for (unsigned i = 0; i < v->environments[environment].n_lowers; i++) {
        const char *path = v->environments[environment].lowers[i];
        snprintf(to, sizeof(to), ASIDE "/%u", i);
        if (!is_covered(path))
            continue;
        if (make_dir(to, e) < 0)
            return -1;
        if (mount(path, to, NULL, MS_BIND | MS_REC, NULL) < 0)
            return err_set(e, errno, "cannot put %s aside", path);
    }
    return 0;
}

int root_show_saved(const struct root_view *v, unsigned environment, struct err *e)
{
    char from[64];

    if (!covers_any(v, environment))
        return 0;
    for (unsigned i = 0; i < v->environments[environment].n_lowers; i++) {
        const char *path = v->environments[environment].lowers[i];
        snprintf(from, sizeof(from), ASIDE "/%u", i);
        if (!is_covered(path))
            continue;
        if (make_dirs("", path, e) < 0)
            return -1;
        if (mount(from, path, NULL, MS_MOVE, NULL) < 0)
            return err_set(e, errno, "cannot show %s", path);
    }
    return umount2(ASIDE, MNT_DETACH) < 0 ? err_set(e, errno, "cannot let go of " ASIDE) : 0;
}

int root_mount_devices(const struct root_view *v, unsigned slot, struct err *e)
{
    char from[64], to[64];

    if (v->device_sets) {
        snprintf(from, sizeof(from), "/dev/%u", slot);
        return bind_read_only(from, ROOT_BOX "/dev", e);
    }
    for (size_t i = 0; i < COUNT(device_names); i++) {
        snprintf(from, sizeof(from), "/dev/%s", device_names[i]);
        snprintf(to, sizeof(to), ROOT_BOX "/dev/%s", device_names[i]);
        if (bind_read_only(from, to, e) < 0)
            return -1;
    }
    return 0;
}

int root_pivot(struct err *e)
{
    if (chdir(ROOT_BOX) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return err_set(e, errno, "pivot_root");
    /* The keeper's view now lies on top of ours: take it away, and no path leads back. */
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_set(e, errno, "cannot let go of the old root");
    return 0;
}
