"""What programs say to newer libraries than Debian's, or to ones that bring along what Debian has apart."""
from .pristine import __builtins__

import sys
from shutil import which

from .imports import when_imported


def install():
    when_imported("imageio", add_v2)
    when_imported("pulp.apis.coin_api", find_cbc)


def add_v2(imageio):
    """`import imageio.v2`: the name, since imageio 2.16, of what it was before."""
    name = imageio.__name__ + ".v2"
    version = tuple(int(part) for part in imageio.__version__.split(".")[:2])
    if version < (2, 16) and name not in sys.modules:
        sys.modules[name] = imageio.v2 = imageio


def find_cbc(coin_api):
    """PULP_CBC_CMD is the solver in pulp's own directory, and refuses where that is not. Debian's is among the
    commands, where its base class looks."""
    solver = coin_api.PULP_CBC_CMD
    if which("cbc") and not which(solver.pulp_cbc_path):
        for name in ("available", "actualSolve"):
            if name in vars(solver):
                delattr(solver, name)
