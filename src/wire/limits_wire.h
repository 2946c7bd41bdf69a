/* limits_wire: limits as fields of a message: eight u64, in the order of struct limits. */
#pragma once

#include "base/limits.h"
#include "wire/fields.h"

void limits_put(struct buf *b, const struct limits *l);
void limits_get(struct fields *f, struct limits *ret);
