"""What an environment's python3 executes to become a zygote."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import _retort
import retort_kernel

if retort_kernel.BRANCH_SEED != _retort.BRANCH_SEED:
    raise SystemExit("the seed of a branch has another length in zygote/keep.h than in retort_kernel/reseed.py")

few = bool(os.environ.pop("RETORT_FEW", ""))  # only a few boxes will come of this zygote
versions = retort_kernel.warm(os.environ.pop("RETORT_PRELOAD", "").split(), _retort.CHANNEL,
                              _retort.keep, few)
if not few:
    _retort.settle()
# This returns only in a fork that is sealed in its box.
cpus, memory, awaited = _retort.serve(versions, retort_kernel.renew,
                                       None if few else retort_kernel.rehearse, retort_kernel.rehearse_more)
retort_kernel.serve(_retort.CHANNEL, cpus, _retort.ready, rehearse=not awaited, memory=memory)
