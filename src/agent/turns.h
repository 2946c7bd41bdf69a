/* turns: who speaks is told to a model by words of its template: <|im_start|>user, [INST], <start_of_turn>.
 *
 * Servers of local models put a conversation into one text and make tokens of that, the template's words wherever they
 * stand: in what a cell printed they would end its message, and begin one of the user's. So a space goes into each of
 * them, and they are text like another.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

void turns_break(const char *text, size_t len, struct buf *out);
