/* objects: the interpreter and its libraries in memory, laid out for the sake of the zygote's forks. */
#pragma once

#include "zygote/image.h"

/* After the warm-up, when everything is loaded. */
void objects_settle(struct image *image);
