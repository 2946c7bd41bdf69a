"""retort's kernel: the Python that runs a session's cells.

    warm      entry points: warm() in the zygote, renew() and serve() in each session, rehearse() and
              rehearse_more() in trials of one
    kernel    the loop: a frame in, a cell run, an answer out
    channel   frames and fences on the pipes to the session's owner
    frames    the frames as bytes
    shell     IPython's shell, made to raise instead of print
    display   values to mime bundles to frames
    points    forks that wait, to take a dead interpreter's place
    figures   matplotlib's figures, with mpl_backend; charts tells them as data
    tables    pandas' tables, within bounds and as data
    renderers Pillow, plotly, altair, tqdm
    fonts     text in every script
    newer     what newer libraries understand
    imports   what is done to a library when it comes
    streams   sys.stdout and sys.stderr, with printing
    commands  !commands and %%bash
    variables what the user's names stand for, as JSON
    site      for every Python in a box
    forks     what Python does around a fork
    libraries what code asks for, and what to say where it is missing; inventory lists it
    installs  pip, without a network
    lean      IPython, imported without its terminal
    heap      the zygote's memory, laid out for its forks
    tracebacks, keyboard, reseed, blas, pristine
"""
from . import heap

_names = heap.begin()

from .reseed import BRANCH_SEED
from .warm import rehearse, rehearse_more, renew, serve, warm

del _names

__all__ = ["BRANCH_SEED", "rehearse", "rehearse_more", "renew", "serve", "warm"]
