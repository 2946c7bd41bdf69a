/* fixture: see fixture.h. */
#include "fixture.h"

struct fake f;

int fixture_setup(void **state)
{
    (void)state;
    fake_open(&f);
    return 0;
}

int fixture_teardown(void **state)
{
    (void)state;
    fake_stop(&f);
    return 0;
}
