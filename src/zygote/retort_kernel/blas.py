"""Threads of the linear algebra libraries: one in the zygote, as many as the box has cores after.

A library that starts threads at import would leave a zygote that cannot be forked safely.
"""
import ctypes
import os

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
             "BLIS_NUM_THREADS")
# OpenBLAS as distributions build it, as numpy's and scipy's wheels do, then MKL.
SETTERS = ("openblas_set_num_threads", "openblas_set_num_threads64_",
           "scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads",
           "MKL_Set_Num_Threads")

_setters = []
_threads = None


def limit_environment(threads):
    global _threads
    _threads = threads
    for name in VARIABLES:
        os.environ[name] = str(threads)


def prepare():
    """In the zygote, after the imports: find the libraries."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if "/" in line}
    for path in paths:
        if "blas" in os.path.basename(path) or "mkl_rt" in os.path.basename(path):
            library = ctypes.CDLL(path)
            _setters.extend(getattr(library, name) for name in SETTERS if hasattr(library, name))


def use(cpus):
    """As many threads as whole cores; cpus 0 is a box without such a limit."""
    if cpus and cpus < 2:
        threads = 1
    else:
        cores = len(os.sched_getaffinity(0))
        threads = min(int(cpus), cores) if cpus else cores
    if threads != _threads:
        limit_environment(threads)
        for setter in _setters:
            setter(threads)
