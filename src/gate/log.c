/* log: one line for each thing that an operator may want to know, on stderr.
 *
 * Never code, data, names of files or tokens: what a person gave to the server is not in its log.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "gate/inside.h"

void log_line(const char *fmt, ...)
{
    static unsigned long lost;
    char line[1024], date[32];
    time_t now = time(NULL);
    struct tm tm;
    va_list ap;

    gmtime_r(&now, &tm);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
    va_start(ap, fmt);
    int len = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    for (int i = 0; i < len && line[i]; i++) /* an error's text may come from elsewhere */
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    /* A log that nobody reads must not stop the server: what does not fit is lost, and counted. */
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT)) {
        lost++;
        return;
    }
    if (lost > 0)
        dprintf(STDERR_FILENO, "%s log lost=%lu\n", date, lost);
    lost = 0;
    dprintf(STDERR_FILENO, "%s %s\n", date, line);
}
