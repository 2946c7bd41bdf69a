/* shared: memory that two processes would go on having together after a fork. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* One mapping of it: of a file, or of memory without a name. */
struct shared {
    char *start;
    size_t len;
    int prot;
    off_t offset;
    char *path; /* NULL: it has no name */
};

struct shared_list {
    struct shared *list;
    unsigned n;
};

/* Find them, as they are now; -1: not all. What has a name has it in the root that we are in. */
int shared_note(struct shared_list *l);
/* Bytes that a state of the session does not have for itself: they stay what the live one makes of them. Also in a
 * file of the workspace, since what is written to it in this way shows in none of its times. */
size_t shared_left_behind(const struct shared_list *l);
/* In a branch: files are those of the new root, and the rest is a copy. Leaves where that cannot be. */
void shared_split(const struct shared_list *l);
void shared_done(struct shared_list *l);
