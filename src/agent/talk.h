/* talk: a conversation as all providers have it in common.
 *
 * It is a JSON array of messages, and a transcript is the same messages, one a line:
 *
 *     {"role":"user", "text":"…"}
 *     {"role":"model", "text":"…",                       what it said; "" where it only called
 *      "calls":[{"id":"…","name":"python","arguments":"{\"code\":…}"}],     absent where there are none
 *      "raw":{"protocol":"messages","content":…}}        what the provider wants back as it was, for its own
 *     {"role":"results", "results":[{"id":"…","name":"python","text":"…","failed":true,
 *                                    "pictures":[{"type":"image/png","data":"<base64>"}]}]}
 *
 * Each call of a model message has its result in the results message right behind it: a provider refuses a
 * conversation where that is not so. The ids are unique in the conversation.
 *
 * With a model that has no tools ("blocks"), calls are the fenced blocks of Python in its text, and results
 * go back to it as a user's message: the messages here are the same.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define TOOL_NAME "python" /* the only tool that there is */

json_t *talk_user(const char *text, size_t len);
/* Results are added with talk_add_result. */
json_t *talk_results(void);
/* `pictures` (or NULL) is taken over. The text is made valid UTF-8. */
void talk_add_result(json_t *results, const char *id, const char *text, bool failed,
                     json_t *pictures);
/* {"type","data"} for the array. */
json_t *talk_picture(const char *type, const void *data, size_t len);
