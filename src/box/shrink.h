/* shrink: a filter program in fewer instructions. */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>

/* A program that decides every call as `p` does, as short as comparisons of ranges make it. False: there
 * is something in it that is not understood here; `p` is as good as it was. */
bool shrink_program(const struct sock_fprog *p, struct sock_fprog *ret);
