/* calls_environments: what sessions find in each environment.
 *
 * A box of it is asked when the first client wants to know, one environment after the other, and the answer is
 * kept for as long as the server runs. Clients that ask meanwhile wait for the same answer. The box is nobody's
 * session: it counts for no token and leaves no record. So one that fails is not asked anew by everybody who
 * comes, but once in a while.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gate/calls.h"
#include "session/cell_json.h"

#define PATIENCE_MS 120000
#define FAILURE_MS 10000 /* that one is remembered */
#define ASKERS_MAX 256   /* who wait at once */

struct asker {
    struct asker *next;
    struct request *request;
};

static char *known[CONFIG_LIST]; /* JSON objects, in the order of the environments */
static struct asker *askers;
static unsigned n_askers;
static struct session *asked; /* of the environment that is being asked, or NULL */
static struct {
    int64_t until_ms; /* nobody is asked */
    char why[512];
} failure; /* the last one */

/* ---- who waits ---- */

static void forget(struct asker *a)
{
    for (struct asker **at = &askers; *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            n_askers--;
            free(a);
            return;
        }
}

static void on_abandoned(void *work)
{
    forget(work);
}

static struct request *take_asker(void)
{
    struct request *r = askers->request;

    request_unwork(r);
    forget(askers);
    return r;
}

/* The first that has not answered yet; their number where all have. */
static unsigned unknown(const struct gate *g)
{
    unsigned i = 0;

    while (g->environments[i] && known[i])
        i++;
    return i;
}

static void answer(struct request *r)
{
    struct buf text = {0};

    buf_add_text(&text, "{\"data\":[");
    for (unsigned i = 0; r->gate->environments[i]; i++)
        buf_add_fmt(&text, "%s%s", i ? "," : "", known[i]);
    buf_add_text(&text, "],\"next\":null}");
    reply_text(r, 200, "application/json", &text);
}

static void refuse(struct request *r, int64_t now_ms)
{
    reply_later(r, 503, (unsigned)((failure.until_ms - now_ms + 999) / 1000), "no_box",
                "the environment \"%s\" could not be asked: %s",
                r->gate->environments[unknown(r->gate)], failure.why);
}

/* ---- asking ---- */

static void ask_next(struct gate *g);

static void stop_asking(void)
{
    session_close(asked);
    asked = NULL;
}

static void failed(struct gate *g, const char *why)
{
    int64_t now_ms = clock_now_ms();

    log_line("environment name=%s error=\"%s\"", g->environments[unknown(g)], why);
    failure.until_ms = now_ms + FAILURE_MS;
    snprintf(failure.why, sizeof(failure.why), "%s", why);
    stop_asking();
    while (askers)
        refuse(take_asker(), now_ms);
}

static void on_opened(void *ctx, struct session *s, const struct err *e)
{
    struct err why;

    if (e)
        failed(ctx, e->text);
    else if (session_run(s, ENVIRONMENT_CODE, strlen(ENVIRONMENT_CODE), PATIENCE_MS, &why) < 0)
        failed(ctx, why.text);
}

static void on_done(void *ctx, struct session *s, struct cell *c)
{
    struct gate *g = ctx;
    unsigned i = unknown(g);
    json_t *found = cell_environment_json(c);
    (void)s;

    if (!found) {
        failed(g, c->error.value ? c->error.value : cell_status_name(c->status));
        cell_free(c);
        return;
    }
    cell_free(c);
    json_object_set_new(found, "name", json_string(g->environments[i]));
    known[i] = json_text(found);
    json_decref(found);
    stop_asking();
    ask_next(g);
}

static void on_ended(void *ctx, struct session *s)
{
    (void)s;
    failed(ctx, "its box came to an end");
}

void environments_refuse(void)
{
    if (asked)
        stop_asking();
    while (askers)
        reply_later(take_asker(), 503, 5, "draining",
                    "the server is about to stop; try again soon");
}

/* With a memory in which the largest of what it has can tell its version, and else what ready boxes have. */
static struct limits limits_for(const struct gate *g)
{
    struct limits usual, limits = g->config->limits;

    limits_default(&usual);
    if (limits.memory < usual.memory)
        limits = usual;
    return limits;
}

static void ask_next(struct gate *g)
{
    static const struct session_events events = {
        .opened = on_opened, .done = on_done, .ended = on_ended};
    struct limits limits = limits_for(g);
    unsigned i = unknown(g);

    if (g->environments[i]) {
        asked = session_open(g->vessel, i, &limits, &events, g);
        session_keep(asked, 0);
        return;
    }
    while (askers)
        answer(take_asker());
}

void call_environments(struct request *r)
{
    struct gate *g = r->gate;

    if (!g->environments[unknown(g)]) {
        answer(r);
        return;
    }
    int64_t now_ms = clock_now_ms();
    if (!asked && now_ms < failure.until_ms) {
        refuse(r, now_ms);
        return;
    }
    if (n_askers == ASKERS_MAX) {
        reply_later(r, 503, 5, "busy", "many ask for the environments; try again soon");
        return;
    }
    struct asker *a = xcalloc(1, sizeof(*a));
    *a = (struct asker){.next = askers, .request = r};
    askers = a;
    n_askers++;
    request_work(r, on_abandoned, a);
    if (!asked)
        ask_next(g);
}
