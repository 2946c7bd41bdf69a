/* meter: see meter.h. */
#include "session/meter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum { PEAK, OOM, PIDS, CPU };

int meter_init(struct meter *m, unsigned kind, struct msg *from, unsigned first)
{
    *m = (struct meter){.kind = METER_NONE, .fds = {-1, -1, -1, -1}};
    if (kind == METER_NONE)
        return 0;
    if (kind > METER_V2 || from->n_fds < first + METER_FDS)
        return -1;
    m->kind = (enum meter_kind)kind;
    for (unsigned i = 0; i < METER_FDS; i++)
        m->fds[i] = msg_take_fd(from, first + i);
    return 0;
}

void meter_done(struct meter *m)
{
    for (unsigned i = 0; i < METER_FDS && m->kind != METER_NONE; i++)
        fd_close(&m->fds[i]);
    m->kind = METER_NONE;
}

/* The number behind `name` at the beginning of a line; "" is a file that is one number. */
static void read_number(int fd, const char *name, uint64_t *ret)
{
    char text[1024];

    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return;
    text[n] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, strlen(name)) != 0)
            continue;
        *ret = strtoull(line + strlen(name), NULL, 10);
        return;
    }
}

void meter_begin(struct meter *m)
{
    /* Before Linux 6.12 version 2 cannot do this: then the peak is the session's so far. */
    if (m->kind != METER_NONE && pwrite(m->fds[PEAK], "0", 1, 0) < 0)
        return;
}

void meter_read_cpu(const struct meter *m, struct meter_reading *r)
{
    uint64_t ns = r->cpu_us * 1000;

    if (m->kind == METER_V1) {
        read_number(m->fds[CPU], "", &ns);
        r->cpu_us = ns / 1000;
    } else if (m->kind == METER_V2) {
        read_number(m->fds[CPU], "usage_usec ", &r->cpu_us);
    }
}

void meter_read(const struct meter *m, struct meter_reading *r)
{
    if (m->kind == METER_NONE)
        return;
    meter_read_cpu(m, r);
    read_number(m->fds[PEAK], "", &r->peak);
    read_number(m->fds[OOM], "oom_kill ", &r->oom_kills);
    read_number(m->fds[PIDS], "max ", &r->pids_refused);
}
