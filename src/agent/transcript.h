/* transcript: a conversation on disk, while it goes on.
 *
 *     ~/.local/state/retort/chats/20261116-201503-3f9c2a.jsonl       0600, in a directory that is 0700
 *
 * The first line tells what the conversation is about ({"retort":1,"created_at","model","files":[{"name","path"}…]}),
 * each other line is a message as talk.h has it, written and synced when it is added. A process that dies leaves
 * at most a last line that is not whole, which is passed over. Nothing here has the key in it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

#define TRANSCRIPTS_KEPT 100 /* older ones are removed when another begins */

struct transcript {
    int fd; /* -1: none is written */
    char *path;
};

/* Begin one; `about` is the first line, and taken over. */
int transcript_begin(struct transcript *t, json_t *about, struct err *e);
/* A message. A disk that is full is told once, by false. */
bool transcript_add(struct transcript *t, const json_t *message);
void transcript_done(struct transcript *t);

/* Go on with one: its path, or NULL for the newest. What was in it is returned, and further messages are added. */
int transcript_continue(struct transcript *t, const char *path, json_t **ret_about,
                        json_t **ret_talk, struct err *e);
