/* clients: connections that take too much of what is everybody's: time to say what they want, or memory for
 * answers that they do not read.
 *
 * libmicrohttpd ends those that are silent. Here are those that say a byte now and then: each of them costs
 * one of the connections there are, and whoever comes without a token can do it.
 */
#include <sys/socket.h>

#include "base/clock.h"
#include "gate/inside.h"

#define BODY_BYTES_MS 16 /* slower than this a body may not be, after its first seconds */

/* When it is too late for what we wait for (clock_now_ms), or INT64_MAX. */
static int64_t deadline_ms(const struct client *c)
{
    const struct request *r = c->request;

    if (!r)
        return c->idle_ms + CLIENT_IDLE_S * 1000;
    if (!r->started)
        return r->began_us / 1000 + CLIENT_ASK_MS;
    if (r->body_over || r->queued || r->route->body == BODY_STREAM)
        return INT64_MAX; /* an upload takes as long as it does: it is not held */
    return r->began_us / 1000 + CLIENT_ASK_MS +
           (int64_t)((r->body.len + r->discarded) / BODY_BYTES_MS);
}

/* It closed its side: is there more of it to come? */
static bool is_half(const struct client *c)
{
    return !c->request || !(c->request->body_over || c->request->queued);
}

int64_t clients_tick(struct gate *g, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX, clock_ms = clock_now_ms();

    for (struct client *c = g->clients; c; c = c->next) {
        int64_t left_ms = deadline_ms(c) - clock_ms;
        bool late = left_ms <= 0;
        if (c->hung_up_ms && now_ms - c->hung_up_ms >= HANGUP_MS) {
            c->hung_up_ms = 0;
            late = late || is_half(c);
        }
        if (c->hung_up_ms && c->hung_up_ms + HANGUP_MS - now_ms < left_ms)
            left_ms = c->hung_up_ms + HANGUP_MS - now_ms;
        if (late)
            shutdown(c->socket.fd, SHUT_RDWR); /* the rest of it will never come */
        else if (left_ms < next_ms - now_ms)
            next_ms = now_ms + left_ms;
    }
    return next_ms;
}

/* ---- memory ---- */

/* The answer that has been under way for longest, of this token or of all; NULL: there is none but r's. */
static struct request *oldest_answer(const struct request *r, const struct holder *h)
{
    struct request *oldest = NULL;

    for (const struct client *c = r->gate->clients; c; c = c->next) {
        struct request *q = c->request;
        if (q && q != r && q->answered_us && q->held > SMALL_REQUEST && !q->gone &&
            (!h || q->holder == h) && (!oldest || q->answered_us < oldest->answered_us))
            oldest = q;
    }
    return oldest;
}

void request_answer_holds(struct request *r, uint64_t *held, uint64_t now)
{
    struct request *slow;

    request_holds(r, held, now);
    if (!r->answered_us)
        r->answered_us = clock_now_us();
    while (!request_has_room(r) &&
           (slow = oldest_answer(r, holder_has_room(r) ? NULL : r->holder))) {
        log_line("slow reader shut token=%s bytes=%llu",
                 slow->holder ? slow->holder->token.name : "-", (unsigned long long)slow->held);
        request_holds_nothing(slow);
        request_kick(slow);
    }
}
