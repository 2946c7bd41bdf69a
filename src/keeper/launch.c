/* launch: see launch.h. */
#include "keeper/launch.h"

#include <string.h>

#include "base/buf.h"
#include "box/root.h"
#include "wire/fields.h"
#include "wire/limits_wire.h"
#include "wire/proto.h"

#define BOXES_UNASKED 1000u

unsigned launch_slots(const struct keeper_options *o)
{
    unsigned boxes = o->boxes ? o->boxes : BOXES_UNASKED;
    return SLOT_ZYGOTE + 1 + (boxes < KEEPER_MAX_BOXES ? boxes : KEEPER_MAX_BOXES);
}

/* ---- what is put ---- */

static void put_environment(struct buf *b, const struct environment *env)
{
    unsigned n = 0;

    while (env->paths[n])
        n++;
    fields_put_text(b, env->name);
    fields_put_text(b, env->python);
    fields_put_text(b, env->preload);
    fields_put_u8(b, env->wheels != NULL);
    fields_put_text(b, env->wheels ? env->wheels : "");
    fields_put_u32(b, n);
    for (unsigned i = 0; i < n; i++)
        fields_put_text(b, env->paths[i]);
}

static void put_options(struct buf *b, const struct keeper_options *o)
{
    limits_put(b, &o->limits);
    fields_put_u32(b, o->boxes);
    fields_put_u32(b, o->pool);
    fields_put_u32(b, o->patience_ms);
    fields_put_u32(b, o->blanks);
    fields_put_u8(b, o->few);
    fields_put_u32(b, o->n_environments);
    for (unsigned i = 0; i < o->n_environments; i++)
        put_environment(b, &o->environments[i]);
}

static void put_cgroups(struct buf *b, const struct cgroup_ground *g)
{
    fields_put_u32(b, (uint32_t)g->version);
    fields_put_u32(b, g->n_dirs);
    for (unsigned i = 0; i < CGROUP_HIERARCHIES; i++)
        fields_put_u32(b, (uint32_t)g->has[i]);
    fields_put_text(b, g->name);
    fields_put_u8(b, g->shared_parent);
    fields_put_u8(b, g->stepped_aside);
}

int launch_put(const struct launch *l, struct buf *b, int fds[LAUNCH_FDS], unsigned *ret_n,
               struct err *e)
{
    unsigned n = 0;

    if (l->options.n_environments > ROOT_ENVIRONMENTS)
        return err_set(e, 0, "there are more than %d environments", ROOT_ENVIRONMENTS);
    msg_begin(b, KEEPER_LAUNCH);
    fields_put_text(b, RETORT_VERSION);
    put_options(b, &l->options);
    fields_put_u8(b, l->root);
    fields_put_text(b, l->runner);
    fields_put_u32(b, l->uid_base);
    put_cgroups(b, &l->cgroups);
    if (l->root) {
        fds[n++] = l->uid_lock;
        fds[n++] = l->device_sets;
    }
    for (unsigned i = 0; i < l->cgroups.n_dirs; i++) {
        fds[n++] = l->cgroups.dirs[i];
        fds[n++] = l->cgroups.parents[i];
    }
    *ret_n = n;
    return b->len <= MSG_SIZE ? 0 : err_set(e, 0, "there is too much in the environments' files");
}

/* ---- what is got ---- */

static char *get_text(struct fields *f)
{
    size_t len;
    const char *text = fields_get_bytes(f, &len);
    char *copy = xcalloc(1, len + 1);

    memcpy(copy, text, len);
    return copy;
}

static void get_environment(struct fields *f, struct environment *ret)
{
    ret->name = get_text(f);
    ret->python = get_text(f);
    ret->preload = get_text(f);
    bool wheels = fields_get_u8(f);
    cleanup_free char *where = get_text(f);
    ret->wheels = wheels ? xstrdup(where) : NULL;
    unsigned n = fields_get_u32(f);
    for (unsigned i = 0; i < n && i < ENVIRONMENT_PATHS; i++)
        ret->paths[i] = get_text(f);
}

static void get_options(struct fields *f, struct keeper_options *ret)
{
    static struct environment environments[ROOT_ENVIRONMENTS];

    limits_get(f, &ret->limits);
    ret->boxes = fields_get_u32(f);
    ret->pool = fields_get_u32(f);
    ret->patience_ms = fields_get_u32(f);
    ret->blanks = fields_get_u32(f);
    ret->few = fields_get_u8(f);
    ret->n_environments = fields_get_u32(f);
    ret->environments = environments;
    for (unsigned i = 0; i < ret->n_environments && i < ROOT_ENVIRONMENTS; i++)
        get_environment(f, &environments[i]);
}

static void get_cgroups(struct fields *f, struct cgroup_ground *ret)
{
    ret->version = (int)fields_get_u32(f);
    ret->n_dirs = fields_get_u32(f);
    for (unsigned i = 0; i < CGROUP_HIERARCHIES; i++)
        ret->has[i] = (int)fields_get_u32(f);
    fields_get_text(f, ret->name, sizeof(ret->name));
    ret->shared_parent = fields_get_u8(f);
    ret->stepped_aside = fields_get_u8(f);
}

int launch_get(struct msg *m, struct launch *ret, struct err *e)
{
    char version[32] = "";
    struct fields f;
    unsigned n = 0;

    *ret = (struct launch){.uid_lock = -1, .device_sets = -1};
    fields_init(&f, m->data, m->len);
    fields_get_text(&f, version, sizeof(version));
    if (m->type != KEEPER_LAUNCH || strcmp(version, RETORT_VERSION) != 0)
        return err_set(e, 0,
                       "retort-keeper and retort are not of the same version; install both again");
    get_options(&f, &ret->options);
    ret->root = fields_get_u8(&f);
    fields_get_text(&f, ret->runner, sizeof(ret->runner));
    ret->uid_base = fields_get_u32(&f);
    get_cgroups(&f, &ret->cgroups);
    unsigned expected = (ret->root ? 2 : 0) + 2 * ret->cgroups.n_dirs;
    if (!fields_end(&f) || ret->cgroups.n_dirs > CGROUP_HIERARCHIES ||
        ret->options.n_environments > ROOT_ENVIRONMENTS || m->n_fds != expected)
        return err_set(e, 0, "retort-keeper was not told all that it needs");
    if (ret->root) {
        ret->uid_lock = msg_take_fd(m, n++);
        ret->device_sets = msg_take_fd(m, n++);
    }
    for (unsigned i = 0; i < ret->cgroups.n_dirs; i++) {
        ret->cgroups.dirs[i] = msg_take_fd(m, n++);
        ret->cgroups.parents[i] = msg_take_fd(m, n++);
    }
    return 0;
}
