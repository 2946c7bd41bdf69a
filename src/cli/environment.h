/* environment: from --environment to an interpreter and the paths it needs.
 *
 *     default        /usr/bin/python3, and nothing besides /usr
 *     a/path         a virtual environment or a conda prefix: the directory with bin/python3
 *     name           name.conf in ~/.config/retort/environments or /etc/retort/environments
 *
 * Paths inside the box are the same as outside. An interpreter may live elsewhere than its
 * environment (venv over pyenv, uv or conda), so links are followed and each stop is shown too.
 */
#pragma once

#include "base/err.h"
#include "keeper/keeper.h"

/* `preload` is what to import beforehand where the environment does not say, and `wheels` the directory of wheels,
 * or NULL. */
int environment_load(const char *name_or_path, const char *preload, const char *wheels,
                     struct environment *ret, struct err *e);
void environment_done(struct environment *env);
