/* stand: from the clone to a keeper that stands. Runs in the clone, in namespaces of its own.
 *
 * Its memory, and that of every init that is cloned from it, belongs to the user namespace in which its program was
 * started (main.c): the host's, over which nobody in a box has a right. So nobody there may look at it, whatever
 * rights he has in his own.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/identity.h"
#include "box/steps.h"
#include "keeper/state.h"

struct standing {
    struct launch *launch;
    struct state *state;
    int runner_fd;
    /* the environments' directories, opened; or -errno */
    int paths[ROOT_ENVIRONMENTS][ENVIRONMENT_PATHS];
    int wheels[ROOT_ENVIRONMENTS];
};

static int open_directory(const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* While we still have the starter's uid: his home may be closed to everybody else, and naming a
 * directory in it was his decision. */
static void open_paths(struct standing *c)
{
    c->runner_fd = open(c->launch->runner, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < c->launch->options.n_environments && i < ROOT_ENVIRONMENTS; i++) {
        const struct environment *env = &c->launch->options.environments[i];
        for (unsigned k = 0; k < ENVIRONMENT_PATHS && env->paths[k]; k++)
            c->paths[i][k] = open_directory(env->paths[k]);
        if (env->wheels)
            c->wheels[i] = open_directory(env->wheels);
    }
}

static int step_filter(void *ctx, struct err *e)
{
    struct standing *c = ctx;
    return filter_compile(c->launch->cgroups.version != 0, &c->state->filter, e);
}

static int step_root(void *ctx, struct err *e)
{
    struct standing *c = ctx;
    struct root_source source = {.runner = c->launch->runner,
                                 .runner_fd = c->runner_fd,
                                 .device_sets_fd = c->launch->device_sets};

    if (root_begin(&source, &c->state->view, e) < 0)
        return -1;
    for (unsigned i = 0; i < c->launch->options.n_environments; i++) {
        const struct environment *env = &c->launch->options.environments[i];
        if (root_add_environment(&c->state->view, &source, env->paths, c->paths[i],
                                 env->wheels ? &c->wheels[i] : NULL, e) < 0)
            return err_wrap(e, "environment \"%s\"", env->name);
    }
    return root_finish(&c->state->view, &source, e);
}

static int step_bare(void *ctx, struct err *e)
{
    struct standing *c = ctx;

    /* Libraries remember the name that they see when they are imported, in the zygote. */
    if (sethostname("retort", 6) < 0)
        return err_set(e, errno, "cannot set the host name");
    /* The change of uid made us, and so every init that we clone, undumpable: its uid_map would then
     * belong to the host's root. Nobody shares our uid whom this would let in. */
    if (prctl(PR_SET_DUMPABLE, 1) < 0)
        return err_set(e, errno, "cannot become dumpable");
    if (identity_keep_making(e) < 0)
        return -1;
    return filter_load_first(&c->state->filter, e);
}

static int step_identity(void *ctx, struct err *e)
{
    struct standing *c = ctx;
    /* uid 0 of the new namespace: on the host that is a uid without any right. */
    return identity_become(0, 0, c->launch->root, e);
}

void keeper_stand(struct launch *l, int go)
{
    static const struct step steps[] = {
        {"keeper-identity", step_identity},
        {"keeper-filter", step_filter},
        {"keeper-root", step_root},
        {"keeper-bare", step_bare},
    };
    static struct state state;
    struct standing c = {.launch = l, .state = &state};
    const char *failed;
    char word;
    struct err e = {0};

    for (unsigned i = 0; i < l->cgroups.n_dirs; i++)
        fd_close(&l->cgroups.parents[i]); /* above our own ground: not the keeper's business */
    open_paths(&c);
    if (read(go, &word, 1) != 1)
        _exit(1);
    close(go);
    if (STEPS_RUN(steps, &c, &failed, &e) < 0) {
        keeper_tell_failed(failed, &e);
        _exit(1);
    }
    state.options = &l->options;
    state.cgroups = l->cgroups;
    state.own_ids = l->root;
    state.slots = launch_slots(&l->options);
    state.slot_used = xcalloc(state.slots, sizeof(bool));
    keeper_run(&state, LAUNCH_FD);
}
