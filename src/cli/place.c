/* place: see place.h. */
#include "cli/place.h"

#include "cli/environment.h"

int place_find(struct place *ret, const struct options *o, unsigned idle_s, struct err *e)
{
    struct place p = {.remote = o->server != NULL, .wish.checkpoints = o->checkpoints};

    if (!p.remote && o->token_file)
        return err_set(e, 0, "--token-file is for a server: give --server too");
    if (p.remote && o->wheels)
        return err_set(e, 0, "--wheels is for boxes on this host: a server has its own");
    if (p.remote) {
        p.wish = (struct wish){
            .checkpoints = o->checkpoints,
            .limits = o->limits_given,
            .environment = o->environment_given ? o->environment : NULL,
            .idle_s = idle_s,
        };
        if (address_parse(&p.address, o->server, o->token_file, e) < 0)
            return err_wrap(e, "--server");
    } else if (environment_load(o->environment, "", o->wheels, &p.env, e) < 0) {
        return -1;
    }
    *ret = p;
    return 0;
}

void place_done(struct place *p)
{
    if (p->remote)
        address_done(&p->address);
    else
        environment_done(&p->env);
}

int place_start(const struct place *p, struct owner *ret, const struct options *o, struct err *e)
{
    if (p->remote)
        return owner_connect(ret, &p->address, &p->wish, e);
    if (owner_start(ret, &p->env, &o->limits, e) < 0)
        return -1;
    ret->wish = p->wish;
    return 0;
}
