/* box: see box.h. init's steps run in a fork of the keeper, in fresh namespaces; the kernel process's
 * steps run in a fork of the zygote. No byte of a user's has been seen before the last of them.
 *
 * What an attacker controls: nothing until the end. What he could reach if a step were left out is
 * said at the step.
 */
#include "box/box.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/identity.h"
#include "box/landlock.h"
#include "box/root.h"
#include "box/steps.h"

void box_plan_put(struct buf *b, const struct box_plan *p)
{
    fields_put_u32(b, p->environment);
    fields_put_u32(b, p->slot);
    fields_put_u64(b, p->disk);
    fields_put_u64(b, p->files);
    fields_put_u64(b, p->memory);
    fields_put_u64(b, p->pids);
    fields_put_u32(b, p->cpus_milli);
    fields_put_u8(b, p->has_cgroup);
    fields_put_u8(b, p->attaches);
    fields_put_u8(b, p->own_ids);
    fields_put_u8(b, p->awaited);
}

void box_plan_get(struct fields *f, struct box_plan *ret)
{
    ret->environment = fields_get_u32(f);
    ret->slot = fields_get_u32(f);
    ret->disk = fields_get_u64(f);
    ret->files = fields_get_u64(f);
    ret->memory = fields_get_u64(f);
    ret->pids = fields_get_u64(f);
    ret->cpus_milli = fields_get_u32(f);
    ret->has_cgroup = fields_get_u8(f);
    ret->attaches = fields_get_u8(f);
    ret->own_ids = fields_get_u8(f);
    ret->awaited = fields_get_u8(f);
}

/* "0" is the writer. A way that stayed open would let a guest move its processes, one day: each is
 * closed here, whatever comes of it. */
static int attach(const struct box_ways *w, struct err *e)
{
    int failed = 0;

    for (unsigned i = 0; i < w->n; i++) {
        if (write(w->fds[i], "0", 1) != 1)
            failed = errno;
        close(w->fds[i]);
    }
    return failed ? err_set(e, failed, "cannot enter the cgroup") : 0;
}

/* ---- init ---- */

static int init_attach(void *ctx, struct err *e)
{
    return attach(&((struct box_init *)ctx)->ways, e);
}

/* Not the user's id: user code can neither signal nor trace what opens its files. An ordinary user
 * who runs retort has only one id to give; there init is protected by being undumpable and pid 1.
 * Where there are no cgroups init must be able to kill what is over the limit: the same. */
static int init_identity(void *ctx, struct err *e)
{
    const struct box_plan *p = ((struct box_init *)ctx)->plan;
    bool apart = p->own_ids && p->has_cgroup;
    const int id = apart ? BOX_INIT_ID : BOX_USER_ID;

    return identity_become(id, id, p->own_ids, e);
}

/* Before it is attached: it takes locks of the whole machine's, and must not wait for its share of cores
 * with them in hand. Handed on from here: when the root stands this process lets nobody look at it. */
static int init_network(void *ctx, struct err *e)
{
    struct box_init *b = ctx;

    if (unshare(CLONE_NEWNET) < 0)
        return err_set(e, errno, "unshare");
    b->network_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return b->network_fd < 0 ? err_set(e, errno, "cannot open the namespace") : 0;
}

/* /proc/self/cgroup would tell where on the host the box is. */
static int init_cgroup_namespace(void *ctx, struct err *e)
{
    struct box_init *b = ctx;

    if (unshare(CLONE_NEWCGROUP) < 0)
        return err_set(e, errno, "unshare");
    b->cgroup_fd = b->branch ? open("/proc/self/ns/cgroup", O_RDONLY | O_CLOEXEC) : -1;
    return b->branch && b->cgroup_fd < 0 ? err_set(e, errno, "cannot open the namespace") : 0;
}

static int init_system(void *ctx, struct err *e)
{
    struct box_init *b = ctx;
    return root_mount_system(b->view, b->plan->environment, e);
}

static int init_devices(void *ctx, struct err *e)
{
    struct box_init *b = ctx;
    return root_mount_devices(b->view, b->plan->slot, e);
}

/* A branch's is where it will be; any other's is still being put together. */
static void place_in(const struct box_init *b, const char *place, char *ret, size_t size)
{
    snprintf(ret, size, "%s%s", b->branch ? "" : ROOT_BOX, place);
}

/* Only the processes of this pid namespace, and nothing of the machine: no /proc/cmdline, no
 * /proc/sys, no statistics in which other sessions could be seen at work. */
static int init_proc(void *ctx, struct err *e)
{
    char to[64];

    place_in(ctx, "/proc", to, sizeof(to));
    if (mount("proc", to, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid") < 0)
        return err_set(e, errno, "cannot mount /proc");
    return 0;
}

static int mount_tmpfs(const struct box_init *b, const char *place, struct err *e)
{
    uint64_t size = b->plan->disk, files = b->plan->files;
    char options[160], to[64];

    place_in(b, place, to, sizeof(to));

    /* 0 means "no limit" to tmpfs. The root directory takes one inode of its own. */
    snprintf(options, sizeof(options), "mode=0755,uid=%d,gid=%d,size=%llu,nr_inodes=%llu",
             BOX_USER_ID, BOX_USER_ID, size == LIMIT_NONE ? 0ULL : (unsigned long long)size,
             files == LIMIT_NONE ? 0ULL : (unsigned long long)files + 1);
    if (mount("tmpfs", to, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return err_set(e, errno, "cannot mount a tmpfs at %s", place);
    return 0;
}

/* In memory, in the box's own mount namespace: gone with it. */
static int init_workspace(void *ctx, struct err *e)
{
    return mount_tmpfs(ctx, BOX_WORKSPACE, e);
}

static int init_scratch(void *ctx, struct err *e)
{
    const struct box_init *b = ctx;
    static const char *const places[] = {"/tmp", BOX_HOME, "/dev/shm"};

    if (b->branch && root_save_covered(b->view, b->plan->environment, e) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (mount_tmpfs(b, places[i], e) < 0)
            return -1;
    return b->branch ? root_show_saved(b->view, b->plan->environment, e)
                     : root_mount_covered(b->view, b->plan->environment, e);
}

static int init_host_name(void *ctx, struct err *e)
{
    (void)ctx;
    if (sethostname("retort", 6) < 0 || setdomainname("", 0) < 0)
        return err_set(e, errno, "cannot set the host name");
    return 0;
}

/* 127.0.0.1 of its own; there is no other interface, and no way to make one. */
static int init_loopback(void *ctx, struct err *e)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    (void)ctx;

    cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return err_set(e, errno, "cannot bring the loopback up");
    return 0;
}

static int init_pivot(void *ctx, struct err *e)
{
    (void)ctx;
    return root_pivot(e);
}

static int init_bare(void *ctx, struct err *e)
{
    (void)ctx;
    /* The files of the workspace are the user's. The order matters: this needs a capability. */
    if (identity_files_as(BOX_USER_ID, e) < 0 || identity_drop_but_numbers(e) < 0)
        return -1;
    /* Keeps /proc/1 shut and tracers out even where both halves have one uid. */
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return err_set(e, errno, "cannot become undumpable");
    return 0;
}

static int init_filter(void *ctx, struct err *e)
{
    return filter_load_last(((struct box_init *)ctx)->filter, e);
}

int box_init_enter(struct box_init *b, const char **ret_failed, struct err *e)
{
    static const struct step steps[] = {
        {"init-network", init_network},
        {"box-attach", init_attach},
        {"init-cgroup-namespace", init_cgroup_namespace},
        {"init-identity", init_identity},
        {"init-system", init_system},
        {"init-devices", init_devices},
        {"init-proc", init_proc},
        {"init-workspace", init_workspace},
        {"init-scratch", init_scratch},
        {"init-host-name", init_host_name},
        {"init-loopback", init_loopback},
        {"init-pivot", init_pivot},
        {"init-bare", init_bare},
        {"init-filter", init_filter},
    };
    /* In a copy of the other box's mounts, which it could not take away, and over them its own: Landlock, which
     * its interpreter brings along, knows places by what is below them. */
    static const struct step branch[] = {
        {"init-network", init_network},     {"init-cgroup-namespace", init_cgroup_namespace},
        {"init-identity", init_identity},   {"init-proc", init_proc},
        {"init-workspace", init_workspace}, {"init-scratch", init_scratch},
        {"init-host-name", init_host_name}, {"init-loopback", init_loopback},
        {"init-bare", init_bare},           {"init-filter", init_filter},
    };
    return b->branch ? STEPS_RUN(branch, b, ret_failed, e) : STEPS_RUN(steps, b, ret_failed, e);
}

/* ---- the kernel process ---- */

/* Bytes that RLIMIT_DATA counts already: they are the zygote's, and no guest's. */
static rlim_t inherited_data(void)
{
    char text[128];
    unsigned long pages = 0;
    struct err ignored;

    if (fd_get_text(AT_FDCWD, "/proc/self/statm", text, sizeof(text), &ignored) == 0)
        sscanf(text, "%*u %*u %*u %*u %*u %lu", &pages);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int kernel_attach(void *ctx, struct err *e)
{
    struct box_kernel *b = ctx;

    /* An usher is not among the processes that the box's /proc shows. */
    b->inherited = b->plan->has_cgroup ? 0 : inherited_data();
    return attach(&b->ways, e);
}

int box_kernel_attach(struct box_kernel *b, const char **ret_failed, struct err *e)
{
    static const struct step steps[] = {{"box-attach-kernel", kernel_attach}};

    return STEPS_RUN(steps, b, ret_failed, e);
}

/* The pid namespace is joined already: it takes a fork. The user namespace comes first, because the
 * others belong to it and ask for capabilities that the zygote does not have outside. The mount
 * namespace also moves root and cwd. */
static int kernel_join(void *ctx, struct err *e)
{
    static const int kinds[BOX_NAMESPACES] = {
        [BOX_NS_USER] = CLONE_NEWUSER, [BOX_NS_MNT] = CLONE_NEWNS,  [BOX_NS_IPC] = CLONE_NEWIPC,
        [BOX_NS_UTS] = CLONE_NEWUTS,   [BOX_NS_NET] = CLONE_NEWNET,
    };
    struct box_kernel *b = ctx;

    for (int i = 0; i < BOX_NAMESPACES; i++)
        if (i != BOX_NS_PID && setns(b->namespaces[i], kinds[i]) < 0)
            return err_set(e, errno, "setns %d", i);
    return unshare(CLONE_NEWCGROUP) < 0 ? err_set(e, errno, "unshare") : 0;
}

/* A leaked descriptor is the classic way out of a container: the seven that are meant, and no other. */
static int kernel_descriptors(void *ctx, struct err *e)
{
    struct box_kernel *b = ctx;
    enum { MEANT = 7 };
    int null = open("/dev/null", O_RDONLY);
    const int from[MEANT] = {
        null,       b->stdout_fd, b->stderr_fd, b->channel_out_fd, b->channel_in_fd,
        b->line_fd, b->setup_fd};

    if (null < 0 || fd_place(from, MEANT, 0, BOX_CHANNEL_OUT_FD) < 0)
        return err_set(e, errno, "cannot arrange the descriptors");
    if (close_range(MEANT, ~0U, 0) < 0)
        return err_set(e, errno, "cannot close the other descriptors");
    b->stdout_fd = 1;
    b->stderr_fd = 2;
    b->channel_out_fd = BOX_CHANNEL_OUT_FD;
    b->channel_in_fd = BOX_CHANNEL_IN_FD;
    b->line_fd = BOX_INIT_FD;
    b->setup_fd = BOX_SETUP_FD;
    return 0;
}

static int kernel_user(void *ctx, struct err *e)
{
    return identity_become(BOX_USER_ID, BOX_USER_ID, ((struct box_kernel *)ctx)->plan->own_ids, e);
}

static int kernel_capabilities(void *ctx, struct err *e)
{
    (void)ctx;
    return identity_drop(e);
}

static int kernel_workspace(void *ctx, struct err *e)
{
    (void)ctx;
    umask(022);
    return chdir(BOX_WORKSPACE) < 0 ? err_set(e, errno, "chdir to " BOX_WORKSPACE) : 0;
}

static int kernel_rlimits(void *ctx, struct err *e)
{
    const struct box_kernel *b = ctx;
    const struct box_plan *p = b->plan;
    /* Without cgroups RLIMIT_DATA holds each process to the memory limit (init watches the sum), and
     * RLIMIT_NPROC, which counts in the box's own user namespace, holds the number of processes; the one that
     * waits is among the guest's, and init is one more where it has the same id. */
    rlim_t data =
        p->has_cgroup || p->memory == LIMIT_NONE ? RLIM_INFINITY : p->memory + b->inherited;
    rlim_t processes =
        p->has_cgroup || p->pids == LIMIT_NONE ? RLIM_INFINITY : p->pids + (p->own_ids ? 0 : 1);
    const struct {
        __rlimit_resource_t what;
        rlim_t value;
        /* clang-format off */
    } list[] = {
        /* Not 0: a host whose core_pattern is a program would run it as root for every crash in a
         * box; 1 is the value at which the kernel does not. */
        {RLIMIT_CORE, 1},
        {RLIMIT_DATA, data},
        {RLIMIT_NPROC, processes},
        {RLIMIT_NOFILE, 4096},
        {RLIMIT_MEMLOCK, 8 << 20},
        {RLIMIT_MSGQUEUE, 800 << 10},
        {RLIMIT_SIGPENDING, 1024},
        {RLIMIT_NICE, 0},
        {RLIMIT_RTPRIO, 0},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        struct rlimit now;
        if (getrlimit(list[i].what, &now) < 0)
            return err_set(e, errno, "resource limit %d", (int)list[i].what);
        /* Never above what we were given ourselves. */
        rlim_t value = list[i].value < now.rlim_max ? list[i].value : now.rlim_max;
        struct rlimit limit = {.rlim_cur = value, .rlim_max = value};
        if (setrlimit(list[i].what, &limit) < 0)
            return err_set(e, errno, "resource limit %d", (int)list[i].what);
    }
    return 0;
}

static int kernel_landlock(void *ctx, struct err *e)
{
    (void)ctx;
    /* Not the places alone that can be written: a branch, which brings its domain along, has others there, and
     * Landlock does not look at what they are mounted over. Which those are is a matter of mounts and owners;
     * what is left to it are devices, and whom a signal or an abstract socket may reach. */
    static const char *const all[] = {"/", NULL};
    const struct landlock_places places = {.read = all, .write = all};

    return landlock_confine(&places, e);
}

static int kernel_filter(void *ctx, struct err *e)
{
    return filter_load_last(((struct box_kernel *)ctx)->filter, e);
}

int box_kernel_seal(struct box_kernel *b, const char **ret_failed, struct err *e)
{
    static const struct step steps[] = {
        {"kernel-join", kernel_join},           {"kernel-descriptors", kernel_descriptors},
        {"kernel-user", kernel_user},           {"kernel-capabilities", kernel_capabilities},
        {"kernel-workspace", kernel_workspace}, {"kernel-rlimits", kernel_rlimits},
        {"kernel-landlock", kernel_landlock},   {"kernel-filter", kernel_filter},
    };
    return STEPS_RUN(steps, b, ret_failed, e);
}

/* An interrupt goes to the whole group, so that it reaches what a cell has started. */
static int kernel_process_group(void *ctx, struct err *e)
{
    (void)ctx;
    return setsid() < 0 ? err_set(e, errno, "setsid") : 0;
}

/* The user's own processes may look at each other, as on any machine. Whoever has the zygote's memory may not be
 * looked at, so this is for what has a memory of its own. */
static int kernel_dumpable(void *ctx, struct err *e)
{
    (void)ctx;
    return prctl(PR_SET_DUMPABLE, 1) < 0 ? err_set(e, errno, "cannot become dumpable") : 0;
}

int box_kernel_begin(struct box_kernel *b, const char **ret_failed, struct err *e)
{
    static const struct step steps[] = {
        {"kernel-process-group", kernel_process_group},
        {"kernel-dumpable", kernel_dumpable},
    };
    return STEPS_RUN(steps, b, ret_failed, e);
}
