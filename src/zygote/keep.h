/* keep: a fork of a live interpreter that waits, to take its place when it dies. See
 * docs/decisions/2026-11-16-checkpoints.md. */
#pragma once

/* Before Python.h is included by others it must be here: the stable ABI. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* keep(n, lost): True in the live process: one waits now, with the state after cell n; False: it could not
 * be. In the one that waited and was woken, a string: all that is lost, a line each. */
PyObject *keep(PyObject *self, PyObject *args);
/* same(n): cell n has changed nothing; what waits is good for it too. */
PyObject *same(PyObject *self, PyObject *args);
