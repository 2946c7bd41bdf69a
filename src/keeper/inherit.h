/* inherit: keep what only the other verbs of the program use out of the keeper's forks. */
#pragma once

/* From here on the keeper forks by _Fork() or clone3 only. */
void inherit_little(void);
