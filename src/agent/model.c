/* model: see model.h. */
#include "agent/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

void model_done(struct model *m)
{
    free(m->provider);
    free(m->name);
    free(m->base);
    if (m->key)
        explicit_bzero(m->key, strlen(m->key));
    free(m->key);
    *m = (struct model){0};
}

char *model_title(const struct model *m)
{
    return xasprintf("%s/%s", m->provider, m->name);
}
