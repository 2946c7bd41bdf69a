/* input: lines for the repl, from a person at a terminal (libedit) or from a pipe.
 *
 * While it waits for a key, the owner's loop goes on turning: sessions are served and signals
 * heard.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "guest/owner.h"

struct input;

/* Line editing where stdin and stdout are a terminal. */
struct input *input_new(struct owner *o);
void input_free(struct input *in);
bool input_is_terminal(const struct input *in);

enum input_event {
    INPUT_LINE,
    INPUT_END,         /* Ctrl-D, or the end of the pipe */
    INPUT_INTERRUPTED, /* Ctrl-C */
    INPUT_STOP,        /* a signal, or a closed stdout, says to leave */
    INPUT_FAILED,      /* the keeper is gone */
};

/* The next line, without its newline, in *ret. The prompt is shown on a terminal only, and
 * `prefill` is typed for the person. Lines over INPUT_LINE_MAX end the input. */
#define INPUT_LINE_MAX (16u << 20)
enum input_event input_line(struct input *in, const char *prompt, const char *prefill,
                            struct buf *ret, struct err *e);

/* Has the next line come already, as in a paste, and can it belong to the block before it? */
bool input_goes_on(struct input *in);
