/* pages: the zygote's memory in huge pages, for the sake of its forks. */
#pragma once

/* Before the imports: Python's arenas come from one place from now on. */
void pages_gather(void);

/* After the warm-up: arenas come from where they came before, and what lies together is put into huge
 * pages. */
void pages_settle(void);
