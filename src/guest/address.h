/* address: where a server is and which token opens it, from --server, --token-file and the environment.
 *
 *     http://127.0.0.1:8722                     and the token from --token-file or RETORT_TOKEN
 *     http://127.0.0.1:8722/?token=rt_…         the link that "retort serve" prints
 *     https://host.example/retort               behind a proxy, beneath a path
 *
 * There is no option for the token itself: arguments are seen by everybody on the machine (ps), and stay in
 * the shell's history. A link has one all the same, for trying things out; it is wiped from the arguments as
 * soon as it has been read.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct address {
    char *base;    /* without a slash at its end */
    char *token;   /* NULL: none was given */
    bool loopback; /* no proxy leads there */
};

/* `url` is wiped from where its query begins. token_file may be NULL. */
int address_parse(struct address *ret, char *url, const char *token_file, struct err *e);
/* One that has nothing but where it is: neither a query nor a token, from wherever. */
int address_plain(struct address *ret, const char *url, struct err *e);
/* Are these two on the same server: the same scheme, host and port? */
bool address_same_origin(const char *url, const char *other);
void address_done(struct address *a);
