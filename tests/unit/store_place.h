/* store_place: a store in a directory of its own, and other processes beside it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "gate/store.h"

struct place {
    char dir[64];
    struct store *st; /* may be NULL */
};

int place_setup(void **state);
int place_teardown(void **state);
void place_close(struct place *p);
/* Closed and opened again, or only opened. */
void place_reopen(struct place *p);
/* The first number that a connection answers which is not the store's. */
int64_t place_ask(const struct place *p, const char *sql);
/* Does any file there hold these bytes? */
bool place_holds(const struct place *p, const char *text);

/* Another process. It is started while no store is open here, as SQLite wants it, and waits for the
 * word; it ends well unless something must be that is not. */
struct peer {
    pid_t pid;
    int go;
};
struct peer peer_start(void (*act)(const char *dir), const char *dir);
void peer_go(const struct peer *peer);
void peer_wait(const struct peer *peer);
/* All of it at once: for what is tried as another user, or in a namespace. */
void elsewhere(void (*act)(const char *dir), const char *dir);

#define must(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

extern const struct quota no_quota;
int find(struct store *st, const char *text, struct token *ret);
void add_session(struct store *st, const char *id, int64_t token);
int add_cell(struct store *st, const char *id, uint32_t n, const char *json);
/* Cells 1 to n, of this size and full of `mark`. */
void add_big_cells(struct store *st, const char *id, unsigned n, size_t size, const char *mark);
/* Does this token have this session? */
bool there(struct store *st, int64_t token, const char *id);
