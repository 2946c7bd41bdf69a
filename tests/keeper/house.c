/* house: see house.h. */
#include "house.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "keeper/keeper.h"

#define PATIENCE_MS 240000 /* an emulated machine is slow */

struct vessel *vessel;
struct session *session;
static struct keeper keeper;
static bool opened;

int house_open(void **state)
{
    static char name[] = "default", python[] = "/usr/bin/python3", preload[] = "";
    static const struct environment environment = {
        .name = name, .python = python, .preload = preload};
    struct keeper_options o = {.environments = &environment, .n_environments = 1};
    struct err e = {0};
    (void)state;

    limits_default(&o.limits);
    if (keeper_start(&o, &keeper, &e) < 0)
        fail_msg("keeper_start: %s", e.text);
    vessel = vessel_new(keeper.fd, &e);
    return vessel ? 0 : -1;
}

int house_close(void **state)
{
    (void)state;
    vessel_free(vessel);
    keeper_stop(&keeper);
    return 0;
}

void house_wait(const bool *flag)
{
    struct err e = {0};

    if (vessel_wait(vessel, flag, PATIENCE_MS, &e) != 1)
        fail_msg("nothing came in time: %s", e.text);
}

static void on_opened(void *ctx, struct session *s, const struct err *e)
{
    (void)ctx, (void)s;
    if (e)
        fail_msg("a session did not open: %s", e->text);
    opened = true;
}

void house_session(uint64_t files, void (*done)(void *ctx, struct session *s, struct cell *c))
{
    const struct session_events events = {.opened = on_opened, .done = done};
    struct limits limits;

    limits_default(&limits);
    limits.files = files;
    opened = false;
    session = session_open(vessel, 0, &limits, &events, NULL);
    house_wait(&opened);
}
