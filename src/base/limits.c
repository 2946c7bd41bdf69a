/* limits: see limits.h. */
#include "base/limits.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MOST 1e12

enum unit { SECONDS, BYTES, COUNT, CORES };

static const struct {
    const char *name;
    enum unit unit;
    size_t offset;
    uint64_t standard;
    double least; /* in the user's unit: below it nothing could run */
    double most;  /* above it the kernel would refuse, or a number overflow */
} table[] = {
    {"timeout", SECONDS, offsetof(struct limits, timeout_ms), 60 * 1000, 0.001, SECONDS_MOST},
    {"cpu", SECONDS, offsetof(struct limits, cpu_ms), LIMIT_NONE, 0.001, SECONDS_MOST},
    {"memory", BYTES, offsetof(struct limits, memory), 1ULL << 30, 16 << 20, 1e18},
    {"disk", BYTES, offsetof(struct limits, disk), 512ULL << 20, 4096, 1e18},
    {"files", COUNT, offsetof(struct limits, files), 10000, 16, 1e12},
    {"pids", COUNT, offsetof(struct limits, pids), 64, 4, 1 << 22},
    {"output", BYTES, offsetof(struct limits, output), 1 << 20, 256, 1e18},
    {"cpus", CORES, offsetof(struct limits, cpus_milli), 1000, 0.01, 8192},
};
#define N_LIMITS (sizeof(table) / sizeof(table[0]))

static uint64_t *slot(const struct limits *l, unsigned i)
{
    return (uint64_t *)((char *)(uintptr_t)l + table[i].offset);
}

void limits_default(struct limits *ret)
{
    for (unsigned i = 0; i < N_LIMITS; i++)
        *slot(ret, i) = table[i].standard;
}

/* A decimal number without sign, infinity or hexadecimal, as people write it. */
static int parse_number(const char *text, double *ret, const char **ret_rest)
{
    char *end;

    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return -1;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return -1;
    errno = 0;
    *ret = strtod(text, &end);
    if (errno || end == text || !isfinite(*ret))
        return -1;
    *ret_rest = end;
    return 0;
}

int limits_parse_seconds(const char *text, double *ret, struct err *e)
{
    static const struct {
        const char *suffix;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    const char *rest;
    double number;

    if (parse_number(text, &number, &rest) == 0) {
        for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            double seconds = number * units[i].seconds;
            if (strcmp(rest, units[i].suffix) != 0 || seconds > SECONDS_MOST)
                continue;
            *ret = seconds;
            return 0;
        }
    }
    return err_set(e, 0, "\"%s\" is not a time: write seconds, or 20m, 2h, 7d", text);
}

int limits_parse_size(const char *text, uint64_t *ret, struct err *e)
{
    static const char suffixes[] = "kmgt";
    const char *rest;
    double number;

    if (parse_number(text, &number, &rest) < 0)
        return err_set(e, 0, "\"%s\" is not a size: write bytes, or 512k, 64m, 2g", text);
    if (*rest) {
        const char *s = strchr(suffixes, tolower((unsigned char)*rest));
        if (!s)
            return err_set(e, 0, "\"%s\" is not a size: write bytes, or 512k, 64m, 2g", text);
        number = ldexp(number, 10 * (int)(s - suffixes + 1));
        rest++;
        if (tolower((unsigned char)*rest) == 'b')
            rest++;
    }
    if (*rest || number >= 1e18)
        return err_set(e, 0, "\"%s\" is not a size: write bytes, or 512k, 64m, 2g", text);
    *ret = (uint64_t)number;
    return 0;
}

int limits_parse_checkpoints(const char *text, unsigned *ret, struct err *e)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long n =
        digits > 0 && digits <= 4 && !text[digits] ? strtoul(text, NULL, 10) : ULONG_MAX;

    if (n > CHECKPOINTS_MAX)
        return err_set(e, 0, "\"%s\": write how many are kept, 0 to %u", text, CHECKPOINTS_MAX);
    *ret = (unsigned)n;
    return 0;
}

int limits_parse_summary(const char *text, unsigned *ret, struct err *e)
{
    uint64_t bytes;

    if (limits_parse_size(text, &bytes, e) < 0)
        return -1;
    if (bytes < SUMMARY_MIN || bytes > SUMMARY_MAX)
        return err_set(e, 0, "\"%s\": a summary has 1k to 1m bytes", text);
    *ret = (unsigned)bytes;
    return 0;
}

static int parse_value(unsigned i, const char *value, double *ret, struct err *e)
{
    const char *rest;
    uint64_t bytes;

    if (table[i].unit == BYTES) {
        if (limits_parse_size(value, &bytes, e) < 0)
            return err_wrap(e, "%s", table[i].name);
        *ret = (double)bytes;
        return 0;
    }
    if (table[i].unit == SECONDS)
        return limits_parse_seconds(value, ret, e) < 0 ? err_wrap(e, "%s", table[i].name) : 0;
    if (parse_number(value, ret, &rest) < 0 || *rest)
        return err_set(e, 0, "%s: \"%s\" is not a number", table[i].name, value);
    if (table[i].unit == COUNT && *ret != floor(*ret))
        return err_set(e, 0, "%s: \"%s\" is not a whole number", table[i].name, value);
    return 0;
}

int limits_set(struct limits *l, const char *name, const char *value, struct err *e)
{
    unsigned i = 0;
    double number;

    while (i < N_LIMITS && strcmp(table[i].name, name) != 0)
        i++;
    if (i == N_LIMITS)
        return err_set(e, 0, "there is no limit called \"%s\"", name);
    if (strcmp(value, "none") == 0) {
        *slot(l, i) = LIMIT_NONE;
        return 0;
    }
    if (parse_value(i, value, &number, e) < 0)
        return -1;
    if (number == 0)
        return err_set(e, 0, "%s: 0 is not a limit; say \"none\" to lift it", name);
    if (number < table[i].least)
        return err_set(e, 0, "%s: %s is too little to run anything; the least is %.10g", name,
                       value, table[i].least);
    if (number > table[i].most)
        return err_set(e, 0, "%s: %s is more than can be; say \"none\" to lift it", name, value);
    int milli = table[i].unit == SECONDS || table[i].unit == CORES;
    *slot(l, i) = (uint64_t)(milli ? number * 1000 + 0.5 : number);
    return 0;
}

const char *limits_name(unsigned i)
{
    return i < N_LIMITS ? table[i].name : NULL;
}

double limits_value(const struct limits *l, unsigned i, int *ret_none)
{
    uint64_t value = *slot(l, i);
    int milli = table[i].unit == SECONDS || table[i].unit == CORES;

    *ret_none = value == LIMIT_NONE;
    return milli ? (double)value / 1000 : (double)value;
}
