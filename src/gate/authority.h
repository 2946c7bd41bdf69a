/* authority: "host:port", as it is in "Host:", in an origin, and in `listen`.
 *
 * Stricter than RFC 3986, which allows anything that can be percent-encoded: whatever a browser would
 * read in another way than we do (user names before '@', backslashes, escapes, 127.1 for 127.0.0.1) is
 * no authority at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct authority {
    const char *host; /* a slice: without brackets, and without the dot that may end a name */
    size_t host_len;
    bool literal; /* an IPv4 or IPv6 address */
    int port;     /* -1: not given */
};

/* 0, or -1 where it is none. */
int authority_parse(const char *text, struct authority *ret);
bool authority_same_host(const struct authority *a, const struct authority *b);
