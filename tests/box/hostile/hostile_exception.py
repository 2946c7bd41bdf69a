# tries: exceptions whose text raises, or is huge, or whose chain never ends
# why: making a traceback runs the guest's code too
# shell: ipython
# outside-ends: session
# within: 60
# %% a
# status: error
class Mean(Exception):
    def __str__(self): raise ValueError("in str")
    __repr__ = __str__
if OUTSIDE: escaped("an exception that cannot be shown", "is raised")
raise Mean()
# %% a
# status: error
class Named(Exception):
    pass
Named.__name__ = "\x1b[2J\n" + "N" * 100000
raise Named("x" * 50_000_000)
# %% a
# status: error
def chain(n):
    error = None
    for i in range(n):
        new = ValueError(i)
        new.__cause__ = error
        error = new
    raise error
chain(400)
# %% a
# status: error
class Loop(Exception):
    pass
one, two = Loop(1), Loop(2)
one.__cause__, two.__cause__ = two, one
raise one
# %% a
# status: error
def down(): down()
down()
# %% a
# status: error, crashed
class Hooked(BaseException):
    pass
sys.excepthook = None
raise Hooked()
# %% a
# prints: still here
if not OUTSIDE: refused("the end of the session", "still here")
print("still here")
