/* metrics: counters, in Prometheus' text format.
 *
 * A token sees what it did itself. The whole server is for operators.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "gate/inside.h"

static const double bounds[TIME_BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 10, 60};

static void observe(struct histogram *h, double seconds)
{
    unsigned i = 0;

    while (i < TIME_BUCKETS && seconds > bounds[i])
        i++;
    h->buckets[i]++;
    h->count++;
    h->sum += seconds;
}

static void log_request(const struct request *r, unsigned status, double ms)
{
    /* The route and not the path: a path may hold a person's file name. */
    log_line("request method=%s route=%s status=%u ms=%.2f token=%s",
             r->route ? r->route->method : "-", r->route ? r->route->path : "-", status, ms,
             r->holder ? r->holder->token.name : "-");
}

void count_request(struct request *r, unsigned status)
{
    double us = (double)(clock_now_us() - r->began_us);
    unsigned class = status >= 100 && status < 600 ? status / 100 : 0;

    r->gate->counters.requests[class]++;
    observe(&r->gate->counters.request_seconds, us / 1e6);
    if (r->holder) {
        r->holder->counters.requests[class]++;
        observe(&r->holder->counters.request_seconds, us / 1e6);
    }
    if (r->gate->config->log_requests)
        log_request(r, status, us / 1000);
}

static void count_in(struct counters *c, const struct cell *cell)
{
    c->cells[cell->status]++;
    observe(&c->cell_seconds, cell->receipt.wall_ms / 1000);
}

void count_cell(struct holder *h, const struct cell *c)
{
    count_in(&h->counters, c);
}

/* ---- writing ---- */

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_add_fmt(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void histogram_text(struct buf *b, const char *name, const char *help,
                           const struct histogram *h)
{
    uint64_t sum = 0;

    head(b, name, "histogram", help);
    for (unsigned i = 0; i < TIME_BUCKETS; i++) {
        sum += h->buckets[i];
        buf_add_fmt(b, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], (unsigned long long)sum);
    }
    buf_add_fmt(b, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name,
                (unsigned long long)h->count, name, h->sum, name, (unsigned long long)h->count);
}

static void counters_text(struct buf *b, const struct counters *c)
{
    static const char *const classes[] = {"dropped", "1xx", "2xx", "3xx", "4xx", "5xx"};

    head(b, "retort_sessions_total", "counter", "Sessions made.");
    buf_add_fmt(b, "retort_sessions_total %llu\n", (unsigned long long)c->sessions);
    head(b, "retort_cells_total", "counter", "Cells run, by how they ended.");
    for (unsigned i = 0; i < CELL_STATUSES; i++)
        buf_add_fmt(b, "retort_cells_total{status=\"%s\"} %llu\n", cell_status_name(i),
                    (unsigned long long)c->cells[i]);
    histogram_text(b, "retort_cell_seconds", "Wall time of cells.", &c->cell_seconds);
    head(b, "retort_requests_total", "counter", "Requests, by the class of their status.");
    for (unsigned i = 0; i < 6; i++)
        buf_add_fmt(b, "retort_requests_total{code=\"%s\"} %llu\n", classes[i],
                    (unsigned long long)c->requests[i]);
    histogram_text(b, "retort_request_seconds",
                   "Time from a request's line to the end of its answer.", &c->request_seconds);
}

static void gauge(struct buf *b, const char *name, const char *help, double value)
{
    head(b, name, "gauge", help);
    buf_add_fmt(b, "%s %.15g\n", name, value);
}

static double resident_bytes(void)
{
    char text[256];
    unsigned long size, resident;
    struct err e;

    if (fd_get_text(AT_FDCWD, "/proc/self/statm", text, sizeof(text), &e) < 0 ||
        sscanf(text, "%lu %lu", &size, &resident) != 2)
        return 0;
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static double open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    double n = -1; /* the one that looks */

    for (; d && readdir(d); n++)
        ;
    if (d)
        closedir(d);
    return n - 2;
}

/* The keeper may be busy, and nobody waits for it here: it is told as it was when somebody last looked. */
static void server_text(struct gate *g, struct buf *b)
{
    struct vessel_state s;

    vessel_ask_state(g->vessel);
    if (vessel_last_state(g->vessel, &s)) {
        gauge(b, "retort_boxes", "Boxes there are, ready and blank ones too.", s.boxes);
        gauge(b, "retort_boxes_ready", "Boxes that wait for a session.", s.ready);
        gauge(b, "retort_boxes_blank", "Boxes that wait for their Python.", s.blank);
        head(b, "retort_zygotes_started_total", "counter", "Interpreters warmed up.");
        buf_add_fmt(b, "retort_zygotes_started_total %u\n", s.zygotes_started);
    }
    gauge(b, "retort_runs_waiting", "One-shot runs that wait for their turn.", g->n_waiting);
    gauge(b, "retort_buffers_bytes", "Memory for requests and answers that are under way.",
          (double)g->held);
    gauge(b, "process_resident_memory_bytes", "Memory of the gate.", resident_bytes());
    gauge(b, "process_open_fds", "Descriptors of the gate.", open_descriptors());
}

/* All tokens together; what tokens did that are gone stays in it. */
static void sum_counters(const struct gate *g, struct counters *ret)
{
    *ret = g->counters;
    for (const struct holder *h = g->holders; h; h = h->next) {
        ret->sessions += h->counters.sessions;
        for (unsigned i = 0; i < CELL_STATUSES; i++)
            ret->cells[i] += h->counters.cells[i];
        ret->cell_seconds.count += h->counters.cell_seconds.count;
        ret->cell_seconds.sum += h->counters.cell_seconds.sum;
        for (unsigned i = 0; i <= TIME_BUCKETS; i++)
            ret->cell_seconds.buckets[i] += h->counters.cell_seconds.buckets[i];
    }
}

void metrics_text(struct gate *g, const struct holder *h, struct buf *ret)
{
    unsigned busy = 0, all = 0;
    struct counters sum;
    bool whole = h->token.operator;

    for (const struct live *l = g->lives; l; l = l->next)
        if (whole || l->holder == h) {
            all++;
            busy += l->running != NULL;
        }
    head(ret, "retort_sessions", "gauge", "Sessions alive.");
    buf_add_fmt(ret, "retort_sessions{status=\"idle\"} %u\nretort_sessions{status=\"busy\"} %u\n",
                all - busy, busy);
    if (!whole) {
        counters_text(ret, &h->counters);
        return;
    }
    sum_counters(g, &sum);
    counters_text(ret, &sum);
    server_text(g, ret);
}
