/* find: which model is asked, and where, from flags, a file and the environment.
 *
 *     --model, --base-url, …          before
 *     RETORT_MODEL                    before
 *     ~/.config/retort/model.conf     before
 *     OPENAI_API_KEY and the like     before
 *     a server on this machine
 *
 * The file describes one server and one model. Where a flag or RETORT_MODEL names another provider, or
 * --base-url another server, the file is left aside, and its key with it.
 *
 * A key goes to the host that it is for and nowhere else: one of the environment to its provider's own host
 * or to that of the variable beside it (OPENAI_BASE_URL), the file's to the file's server, --key-file's to the
 * server of this call. docs/MODELS.md says the same to users.
 */
#pragma once

#include <stddef.h>

#include "agent/model.h"
#include "base/buf.h"
#include "base/err.h"

enum model_say { AS_USUAL, SAY_YES, SAY_NO };

/* What flags say; NULL, 0 and AS_USUAL: nothing. */
struct model_wish {
    const char *model;    /* PROVIDER/NAME, PROVIDER, or NAME */
    const char *base_url; /* http:// or https:// */
    const char *protocol; /* as protocol_find knows them */
    const char *key_file;
    const char *config; /* instead of the usual file, and then it must be there */
    enum model_say tools, sees, streams;
    unsigned max_tokens;
    double price_in, price_out;
};

/* May ask servers on this machine what they have, which takes at most a few seconds; a signal that is not
 * blocked ends it as usual. 0: `ret` is the caller's (model_done), and `notes` has a line for each thing that a
 * person should hear of. -1: with ENOENT there is none, and the text has three lines. */
int model_find(const struct model_wish *w, struct model *ret, struct buf *notes, struct err *e);

/* Where its key comes from, or would: for a sentence about a key that is refused. Returns ret. */
char *model_key_hint(const struct model *m, char *ret, size_t size);
