/* limits_wire: see limits_wire.h. */
#include "wire/limits_wire.h"

void limits_put(struct buf *b, const struct limits *l)
{
    fields_put_u64(b, l->timeout_ms);
    fields_put_u64(b, l->cpu_ms);
    fields_put_u64(b, l->memory);
    fields_put_u64(b, l->disk);
    fields_put_u64(b, l->files);
    fields_put_u64(b, l->pids);
    fields_put_u64(b, l->output);
    fields_put_u64(b, l->cpus_milli);
}

void limits_get(struct fields *f, struct limits *ret)
{
    ret->timeout_ms = fields_get_u64(f);
    ret->cpu_ms = fields_get_u64(f);
    ret->memory = fields_get_u64(f);
    ret->disk = fields_get_u64(f);
    ret->files = fields_get_u64(f);
    ret->pids = fields_get_u64(f);
    ret->output = fields_get_u64(f);
    ret->cpus_milli = fields_get_u64(f);
}
