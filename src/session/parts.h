/* parts: which of the forms that a display has is to be shown. */
#pragma once

#include <stdbool.h>

#include "session/session.h"

/* NULL: it has none. */
const struct mime_part *part_find(const struct output *o, const char *type);
/* A PNG, or what other picture there is. */
const struct mime_part *part_picture(const struct output *o);
/* The best text: a table's columns stay aligned in text/plain, while what IPython's own display objects have there is
 * only their class. */
const struct mime_part *part_text(const struct output *o);

/* Width and height, where a picture's first bytes say them. */
bool part_picture_size(const struct mime_part *p, unsigned *ret_w, unsigned *ret_h);
