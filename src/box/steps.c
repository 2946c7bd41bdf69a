/* steps: see steps.h. */
#include "box/steps.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static char injected[64]; /* "": nothing fails on purpose */

/* Every step of every half, in the order in which they happen, with what a person can do. The names
 * are what users see and search for; keep them. */
static const struct {
    const char *name, *remedy;
} all[] = {
    {"keeper-uids", "another retort holds every range of user ids: end one"},
    {"keeper-devices", "needs Linux 5.10 or newer, and mknod allowed for root"},
    {"keeper-namespaces",
     "unprivileged user namespaces are off: as root, set kernel.unprivileged_userns_clone=1 and "
     "user.max_user_namespaces above 0; on Ubuntu also "
     "kernel.apparmor_restrict_unprivileged_userns=0; or run retort as root"},
    {"keeper-identity",
     "on Ubuntu set kernel.apparmor_restrict_unprivileged_userns=0, or run as root"},
    {"keeper-cgroup", "no process may be in the cgroup that was delegated to retort"},
    {"keeper-filter", "needs a kernel with CONFIG_SECCOMP_FILTER"},
    {"keeper-root", "needs tmpfs, overlayfs and a visible /proc; inside a container run it with "
                    "an unmasked /proc (docker: --security-opt systempaths=unconfined)"},
    {"keeper-bare", NULL},
    {"zygote-start", "the environment's python3 must start and find IPython (python3-ipython)"},
    {"box-cgroup", "the memory, pids and cpu controllers must be available below our cgroup"},
    {"box-namespaces", "user.max_*_namespaces are too low for the number of boxes"},
    {"box-hold", NULL},
    {"box-identity", NULL},
    {"init-network", "user.max_net_namespaces is too low for the number of boxes"},
    {"box-attach", NULL},
    {"init-cgroup-namespace", "needs Linux 4.6 or newer"},
    {"init-identity", NULL},
    {"init-system", "needs overlayfs in user namespaces (Linux 5.11 or newer)"},
    {"init-devices", NULL},
    {"init-proc", "needs Linux 5.8 or newer, and a /proc on the host that nothing is mounted over"},
    {"init-workspace", NULL},
    {"init-scratch", NULL},
    {"init-host-name", NULL},
    {"init-loopback", NULL},
    {"init-pivot", NULL},
    {"init-bare", NULL},
    {"init-filter", NULL},
    {"box-fork", "the zygote must be able to fork: look at memory and process limits of the host"},
    {"box-attach-kernel", NULL},
    {"kernel-join", NULL},
    {"kernel-descriptors", NULL},
    {"kernel-user", NULL},
    {"kernel-capabilities", NULL},
    {"kernel-workspace", NULL},
    {"kernel-rlimits", NULL},
    {"kernel-landlock", NULL},
    {"kernel-filter", "needs a kernel with CONFIG_SECCOMP_FILTER"},
    {"kernel-process-group", NULL},
    {"kernel-dumpable", NULL},
    {"box-meters", NULL},
};
#define N_STEPS (sizeof(all) / sizeof(*all))

/* Those of a branch's box that others have not; the rest of its steps are init's. */
static const char *const of_branches[] = {
    "branch-lend",   "branch-cgroup", "branch-enter",      "branch-fork", "branch-files",
    "branch-attach", "branch-tell",   "branch-namespaces", "branch-join", "branch-bare",
};

void steps_inject(const char *name)
{
    snprintf(injected, sizeof(injected), "%s", name ? name : "");
}

int step_fails(const char *name, struct err *e)
{
    if (strcmp(injected, name) == 0)
        return err_set(e, EIO, "failed on purpose (RETORT_FAULT)");
    return 0;
}

int steps_run(const struct step *steps, unsigned n, void *ctx, const char **ret_failed,
              struct err *e)
{
    for (unsigned i = 0; i < n; i++) {
        if (step_fails(steps[i].name, e) < 0 || steps[i].run(ctx, e) < 0) {
            *ret_failed = steps[i].name;
            return -1;
        }
    }
    return 0;
}

const char *steps_name(unsigned i)
{
    return i < N_STEPS ? all[i].name : NULL;
}

const char *steps_branch_name(unsigned i)
{
    return i < sizeof(of_branches) / sizeof(*of_branches) ? of_branches[i] : NULL;
}

bool steps_root_only(const char *name)
{
    return strcmp(name, "keeper-uids") == 0 || strcmp(name, "keeper-devices") == 0;
}

const char *steps_remedy(const char *name)
{
    for (size_t i = 0; i < N_STEPS; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].remedy;
    return NULL;
}
