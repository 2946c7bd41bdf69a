/* evidence: see evidence.h. */
#include "agent/evidence.h"

#include <stdbool.h>
#include <string.h>

#include "agent/numbers.h"
#include "session/notebook_load.h"

void evidence_add_text(struct buf *evidence, const char *text, size_t len)
{
    size_t room = NUMBERS_EVIDENCE_MAX - evidence->len;

    len = len < room ? len : room;
    if (len == 0)
        return;
    buf_add(evidence, text, len);
    for (size_t i = evidence->len - len; i < evidence->len; i++)
        if (evidence->data[i] == '\0')
            evidence->data[i] = ' '; /* a string ends with it */
    if (evidence->len < NUMBERS_EVIDENCE_MAX)
        buf_add(evidence, "\n", 1);
}

/* Tags hold numbers too, and they say nothing. */
static void add_html(struct buf *evidence, const char *text, size_t len)
{
    cleanup_buf struct buf plain = {0};
    bool tag = false;

    buf_room(&plain, len + 1);
    for (size_t i = 0; i < len; i++) {
        tag = tag || text[i] == '<';
        if (!tag)
            buf_add(&plain, text + i, 1);
        else if (text[i] == '>') {
            tag = false;
            buf_add(&plain, " ", 1);
        }
    }
    evidence_add_text(evidence, plain.data, plain.len);
}

static int add_piece(const char *text, size_t len, void *ctx)
{
    struct buf *evidence = ctx;
    size_t room = NUMBERS_EVIDENCE_MAX - evidence->len;

    buf_add(evidence, text, len < room ? len : room);
    return 0;
}

static void add_part(struct buf *evidence, const char *type, const json_t *part)
{
    json_t *text = notebook_joined(part);

    if (text && strcmp(type, "text/html") == 0)
        add_html(evidence, json_string_value(text), json_string_length(text));
    else if (text && strncmp(type, "image/", 6) != 0)
        evidence_add_text(evidence, json_string_value(text), json_string_length(text));
    else if (!text && json_dump_callback(part, add_piece, evidence, JSON_ENCODE_ANY) == 0)
        evidence_add_text(evidence, " ", 1);
    json_decref(text);
}

static void add_string(struct buf *evidence, const json_t *object, const char *key)
{
    json_t *text = notebook_joined(json_object_get(object, key));

    if (text)
        evidence_add_text(evidence, json_string_value(text), json_string_length(text));
    json_decref(text);
}

void evidence_add(struct buf *evidence, const json_t *cell)
{
    const json_t *outputs = json_object_get(cell, "outputs");

    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *output = json_array_get(outputs, i);
        const char *type;
        json_t *part;
        add_string(evidence, output, "text");
        add_string(evidence, output, "evalue");
        json_object_foreach(json_object_get(output, "data"), type, part)
        {
            add_part(evidence, type, part);
        }
    }
}
