/* uploads: the files of -f, on their way into a workspace. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "guest/guest.h"

struct upload {
    char *name; /* in the workspace */
    char *path;
    int fd;
};

struct uploads {
    struct upload *list;
    unsigned n;
};

/* The argument of one -f, which is written to: "PATH", or "NAME=PATH". 0, or EXIT_USAGE after a message. */
int uploads_add(struct uploads *u, const char *verb, char *arg);
/* One under a name that is known; a second of that name is left out. -1: it cannot be a name. */
int uploads_add_named(struct uploads *u, const char *name, const char *path);
/* Open them all: what cannot be read is found before anything is started. */
int uploads_open(struct uploads *u, struct err *e);
/* Copy them into the workspace; they are read from their beginning, so that a second box can have them too where
 * they are files and not pipes. 0; a set of enum turn that said to stop; or -1. */
int uploads_put(struct uploads *u, struct guest *g, struct err *e);
/* [{"name","size","sha256"}], for the metadata of a notebook. Pipes, which can be read once, are left out. */
json_t *uploads_json(const struct uploads *u);
void uploads_done(struct uploads *u);
