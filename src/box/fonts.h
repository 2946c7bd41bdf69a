/* fonts: what fontconfig knows of the host's fonts. */
#pragma once

#include "base/err.h"

/* Copy fontconfig's caches of directories below /usr, which boxes see. Others would tell where on the host there
 * are fonts, and which. */
int fonts_copy_caches(const char *from, const char *to, struct err *e);
