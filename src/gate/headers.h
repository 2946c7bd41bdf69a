/* headers: small parsers and writers of HTTP header values and URL parts. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* One range of a "Range:" header over a file of this size. 1: *ret_first…*ret_last (inclusive) are
 * within it; 0: serve all of it (not bytes, malformed, or several ranges: RFC 9110 lets us ignore those;
 * and an empty file is served, not refused); -1: not satisfiable (416). */
int header_range(const char *value, uint64_t size, uint64_t *ret_first, uint64_t *ret_last);

/* The path of a file from a URL's raw (still percent-encoded) rest: decoded once, and checked: relative,
 * no empty, "." or ".." part, no NUL, parts of at most 255 bytes, 4095 in all, at most 64 deep. Any other
 * byte may be in it, UTF-8 or not, newlines too. The error is a sentence for the client. */
int header_file_path(const char *raw, char **ret, struct err *e);
/* The same check for a path that is not encoded. */
int header_check_path(const char *path, size_t len, struct err *e);

/* Adds the value of Content-Disposition: attachment with the file's last component: an ASCII fallback and
 * filename* in UTF-8 (RFC 6266, 8187); no byte of the name can end the header or its quotes. */
void header_disposition(struct buf *ret, const char *path);

/* The media type by the file's extension; "application/octet-stream" when unknown. Text types carry
 * "; charset=utf-8". */
const char *header_media_type(const char *path);

/* Is this "Host:" one of ours? Always: localhost, and literal addresses (a name that an attacker
 * pointed at us is neither); else it must be in `hosts` (any port, any case). NULL is not. */
bool header_host_ok(const char *host, char *const *hosts);
/* Is this "Origin:" the page of our own host (same host and port as "Host:", http or https), or in
 * `origins`? "null" never is, nor is NULL: what a request without one may do is the caller's to say. */
bool header_origin_ok(const char *origin, const char *host, char *const *origins);
/* Is it written as an origin: scheme://host or scheme://host:port, and nothing else? */
bool header_is_origin(const char *text);

/* Does this "Accept:" ask for text/event-stream? (Named with q > 0; a bare wildcard does not.) */
bool header_wants_events(const char *accept);
