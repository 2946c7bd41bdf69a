/* point_json: a state that is kept, as the contract writes it, and back.
 *
 *     {"n":3,"created_at":"2026-11-16T12:00:00.000Z","memory":409600,"lost":["thread worker-1"]}
 */
#pragma once

#include <jansson.h>

#include "session/session.h"

json_t *point_json(const struct session_point *p);
/* As a server wrote it. ret->lost is *ret_lost, which is the caller's. */
int point_from_json(const json_t *j, struct session_point *ret, char **ret_lost, struct err *e);
