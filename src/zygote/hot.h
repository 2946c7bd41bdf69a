/* hot: the pages that every box writes to, copied with the fork that makes it. */
#pragma once

#include <Python.h>

/* When nothing is written here any more, and before the filter. `rehearse` is called in a fork that ends
 * afterwards, and should do what a box does up to the end of its first cell; `more` likewise, and what only some
 * boxes do. Where the kernel does not give what it takes, boxes copy their pages one by one. */
void hot_settle(PyObject *rehearse, PyObject *more);
