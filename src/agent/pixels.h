/* pixels: whether two pictures are the same, without decoding what a stranger made.
 *
 * Of a PNG, the parts are compared that make its pixels, packed as they are: the program's name and the time
 * in it make no difference. Of others all bytes count. Pictures are texts of JSON, in base64 (or in SVG, as they are).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

bool pixels_same(const json_t *a, const json_t *b);
/* "a picture of 640 × 480 pixels, 21.4 kB" */
json_t *pixels_words(const json_t *picture);
