/* find_file: ~/.config/retort/model.conf, one model as a file describes it. */
#pragma once

#include "agent/find.h"

struct model_file {
    char *path; /* NULL: there is none */
    char *model, *base_url, *protocol;
    char *key; /* of `key`, or of the file that `key_file` names */
    enum model_say tools, sees, streams;
    unsigned max_tokens;
    double price_in, price_out;
};

/* `path` must be there; NULL is the usual one, which need not be. */
int model_file_read(struct model_file *ret, const char *path, struct buf *notes, struct err *e);
void model_file_done(struct model_file *f);

/* A key out of a file, or -1. */
int key_read(const char *path, char **ret, struct buf *notes, struct err *e);
/* It goes into a header: printable, and in one piece. `from` is for the error. */
int key_check(const char *key, const char *from, struct err *e);
void key_free(char *key);
