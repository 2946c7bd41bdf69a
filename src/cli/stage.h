/* stage: a person at a terminal who looks on while an agent works.
 *
 *     I'll look at the file first.                what the model says, as it comes, block by block
 *
 *     ── python ────────────────────────────
 *       df = pd.read_csv("sales.csv")             the code, as it is written
 *       df.groupby("city").sales.sum()
 *     │ city                                      what came out of it, as it comes
 *     │ Lyon    12.5
 *       wrote sales.png  45.5 kB
 *
 *     ⠹ thinking  3 s                             and what is waited for, while it is
 *
 * All of it goes to the terminal that stdout is. Where stdout is none, it gets the answer alone, as it is written, and
 * all the rest is for stderr.
 */
#pragma once

#include <stdbool.h>

#include "agent/agent.h"
#include "guest/outlet.h"

struct stage;

/* `quiet`: nothing is shown but the answer. The outlet stays the caller's and must live longer. */
struct stage *stage_new(struct outlet *out, bool quiet);
void stage_free(struct stage *s);
/* Valid as long as the stage. */
const struct agent_view *stage_view(struct stage *s);
/* The answer in its whole; what of it was shown already is not shown again. Ends what is shown of a question. */
void stage_answer(struct stage *s, const char *text);
