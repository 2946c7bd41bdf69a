/* notebook_load: what a notebook says was done, out of any .ipynb: one of ours, or Jupyter's.
 *
 * A notebook is a stranger's. Its size, the number of its values and their depth are bounded before they take
 * memory, every member is checked, and what is not as nbformat 4 has it is left out, not believed.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define NOTEBOOK_BYTES_MAX (256u << 20)
#define NOTEBOOK_VALUES_MAX 1000000u

struct recorded {
    json_t
        *cells; /* code cells, with "source" a text, "outputs" an array and "metadata" an object */
    json_t *answers;   /* texts: those that say so, or else the last text that there is */
    json_t *questions; /* texts: all the others */
    json_t *files;     /* [{"name","size","sha256"}], that it was made with */
};

/* "-" is standard input. */
int notebook_load(const char *path, struct recorded *ret, struct err *e);
/* The same, out of memory. `name` is for the message. */
int notebook_parse(const char *name, const char *text, size_t len, struct recorded *ret,
                   struct err *e);
void recorded_done(struct recorded *r);

/* A text as nbformat writes it: a string, or an array of them that belong together. NULL: neither. */
json_t *notebook_joined(const json_t *text);
