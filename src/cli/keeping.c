/* keeping: see keeping.h. */
#include "cli/keeping.h"

#include <string.h>

#include "cli/environment.h"
#include "cli/usual.h"
#include "guest/owner.h"

int keeping_load(struct keeping *k, const struct config *c, struct err *e)
{
    const char *preload = c->preload ? c->preload : USUAL_MODULES;

    if (strcmp(preload, "none") == 0)
        preload = "";
    for (; c->environments[k->n_environments]; k->n_environments++)
        if (environment_load(c->environments[k->n_environments], preload, c->wheels,
                             &k->environments[k->n_environments], e) < 0)
            return -1;
    return 0;
}

/* Ended sessions have their boxes for a moment longer. */
static unsigned boxes_at_once(const struct config *c, unsigned n_environments)
{
    unsigned sessions = c->max_sessions + c->max_runs;
    return sessions + sessions / 2 + n_environments * (c->pool + c->blanks) + 16;
}

int keeping_start(struct keeping *k, const struct config *c, struct err *e)
{
    const struct keeper_options options = {
        .environments = k->environments,
        .n_environments = k->n_environments,
        .limits = c->limits,
        .boxes = boxes_at_once(c, k->n_environments),
        .pool = c->pool,
        .blanks = c->blanks,
    };

    return owner_keep(&options, &k->keeper, &k->vessel, e);
}

void keeping_name(const struct keeping *k, const char *ret[CONFIG_LIST + 1])
{
    for (unsigned i = 0; i < k->n_environments; i++)
        ret[i] = k->environments[i].name;
}

void keeping_stop(struct keeping *k)
{
    owner_let_go(&k->keeper, k->vessel);
}

void keeping_done(struct keeping *k)
{
    for (unsigned i = 0; i < k->n_environments; i++)
        environment_done(&k->environments[i]);
}
