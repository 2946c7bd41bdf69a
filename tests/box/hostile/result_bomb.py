# tries: a result, a display and an exception of hundreds of megabytes
# why: what is shown is kept in the cell; it must be bounded before it is sent
# within: 60
# expect: survives
# shell: ipython
# check: at_ease short
# outside-ends: session
# args: --memory 2g
# %% a
# status: ok, limit, error, crashed
unit = 1 if OUTSIDE else 100_000_000
x = "y" * 3 * unit
x
# %% a
# status: ok, limit, error, crashed
from IPython.display import HTML, display
display(HTML("z" * unit))
# %% a
# status: ok, error, limit, crashed
raise ValueError("w" * unit)
# %% a
if OUTSIDE:
    os._exit(1)  # it stood all this: nothing was bounded
print("still here")
