/* Configuration files, on any bytes. What is taken is whole: no limit is 0, no list is over its end, no
 * text is missing; and reading it again gives the same answer. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "gate/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_limits(const struct limits *l)
{
    for (unsigned i = 0; limits_name(i); i++) {
        int none;
        double value = limits_value(l, i, &none);
        assert_that(none || (value > 0 && isfinite(value)));
    }
}

static void check(const struct config *c)
{
    check_limits(&c->limits);
    check_limits(&c->max);
    assert_that(c->listen && strchr(c->listen, ':'));
    assert_that(c->environments[0] && c->environments[0][0]);
    assert_that(!c->hosts[CONFIG_LIST] && !c->origins[CONFIG_LIST] &&
                !c->environments[CONFIG_LIST]);
    assert_that(c->checkpoints <= CHECKPOINTS_MAX);
    assert_that(c->idle_timeout_s >= 1 && c->retention_s >= 0 && c->drain_s >= 0);
    assert_that(c->max_sessions && c->max_runs && c->max_connections);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_fd int fd = memfd_create("conf", MFD_CLOEXEC);
    struct config c;
    struct err e, again;
    char path[64];

    assert_that(fd >= 0 && fd_write_all(fd, data, size) == 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    config_default(&c);
    int r = config_load(&c, path, &e);
    check(&c); /* also when it failed half-way */
    if (r == 0) {
        config_check(&c, &e);
        assert_that(config_load(&c, path, &e) == 0);
    } else {
        assert_that(config_load(&c, path, &again) == -1 && strcmp(e.text, again.text) == 0);
    }
    check(&c);
    config_done(&c);
    return 0;
}
