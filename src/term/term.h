/* term: what the terminal behind a descriptor can show.
 *
 * From the environment and from what the kernel knows of its size; the terminal itself is never asked, because its
 * answer would arrive among what the person types.
 */
#pragma once

#include <stdbool.h>

enum term_pictures { PICTURES_NONE, PICTURES_BLOCKS, PICTURES_SIXEL, PICTURES_KITTY };
enum term_depth { DEPTH_16, DEPTH_256, DEPTH_TRUE };

struct term {
    bool tty;
    bool moves;   /* a line can be drawn over */
    bool colours; /* … and bold, italics and so on */
    enum term_depth depth;
    enum term_pictures pictures;
    unsigned columns, rows;           /* of characters; 80 and 24 where nobody knows */
    unsigned cell_width, cell_height; /* of one, in pixels */
};

/* NO_COLOR, TERM=dumb, and a descriptor that is no terminal mean plain text. RETORT_PICTURES (kitty, sixel, blocks,
 * none) overrides what is concluded from the rest of the environment, but on no terminal there are no pictures. */
void term_look(struct term *t, int fd);
/* Its size now: it may have changed. */
void term_measure(struct term *t, int fd);
