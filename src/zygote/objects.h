/* objects: the interpreter and its libraries in memory, laid out for the sake of the zygote's forks. */
#pragma once

/* After the warm-up, when everything is loaded. */
void objects_settle(void);
