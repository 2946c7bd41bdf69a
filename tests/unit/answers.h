/* answers: an HTTP server that says what a test has written down, one answer a connection, in order. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define ANSWERS_MAX 8
#define ANSWERS_REQUEST 8192

struct answer {
    const char *bytes; /* status, headers, body; NULL: nothing is said */
    int after_ms;      /* and not at once */
    size_t more;       /* so many times "x" behind it */
    bool holds;        /* the connection stays open until the end */
};

struct answers {
    const struct answer *list;
    unsigned n;
    int listener, stop[2], held[ANSWERS_MAX];
    unsigned served, n_held; /* `served`: for after answers_stop, or when an answer has come */
    char request[ANSWERS_MAX][ANSWERS_REQUEST];
    char url[64];
    pthread_t thread;
};

/* Beyond the last answer, connections are closed without a word. */
void answers_start(struct answers *a, const struct answer *list, unsigned n);
void answers_stop(struct answers *a);

#define ANSWER_EVENTS                                                                              \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"                        \
    "Connection: close\r\n\r\n"
#define ANSWER_JSON "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define ANSWER_STATUS(line)                                                                        \
    "HTTP/1.1 " line "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
