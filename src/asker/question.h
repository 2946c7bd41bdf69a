/* question: one order of the asker's, in a process of its own. */
#pragma once

#include "agent/model.h"
#include "asker/asker.h"

/* Read the order, answer it, and tell the events. Takes both descriptors over; returns an exit status. */
int question_main(const struct asker_options *o, const struct model *m, int order_fd,
                  int events_fd);
