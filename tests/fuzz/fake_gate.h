/* fake_gate: a gate for fuzzers, with a keeper and boxes that are socket pairs: boxes are made and go, and nothing in
 * them ever answers. */
#pragma once

#include "gate/inside.h"

extern struct gate gate;

void fake_check(int result, const struct err *e);
/* For gate_open. */
struct vessel *fake_vessel(void);
/* Turns of the gate's loop, and of the keeper. */
void fake_turns(unsigned n);
