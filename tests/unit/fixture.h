/* fixture: a fake box with an open session for each test, and its end. */
#pragma once

#include "fake.h"

extern struct fake f;

int fixture_setup(void **state);
int fixture_teardown(void **state);
