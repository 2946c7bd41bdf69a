/* clock: see clock.h. */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

int64_t clock_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_now_ms(void)
{
    return clock_now_us() / 1000;
}

int64_t clock_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

char *clock_text(int64_t wall_ms, char ret[CLOCK_TEXT])
{
    char date[32];
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret, CLOCK_TEXT, "%s.%03dZ", date, (int)(wall_ms % 1000));
    return ret;
}

int clock_from_text(const char *text, int64_t *ret_wall_ms)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    unsigned ms = 0;
    int len = 0;

    if (!rest || sscanf(rest, ".%3uZ%n", &ms, &len) != 1 || len != 5 || rest[len])
        return -1;
    *ret_wall_ms = (int64_t)timegm(&tm) * 1000 + ms;
    return 0;
}
