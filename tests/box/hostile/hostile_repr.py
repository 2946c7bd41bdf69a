# tries: results whose text raises, lies, loops, exits or is no text
# why: the runner calls the guest's code when it shows a result; the session must stand it
# shell: ipython
# within: 60
# %% a
class Raises:
    def __repr__(self): raise RuntimeError("in repr")
class NotText:
    def __repr__(self): return 42
class Exits:
    def __repr__(self): sys.exit(3)
class Html:
    def _repr_html_(self): return b"\xff\xfe"
    def _repr_png_(self): return "no bytes"
    def _repr_mimebundle_(self, **_): return {1: 2, "text/plain": object(), "x" * 100000: "y", "\n": "\r"}
class Deep:
    def __repr__(self): return repr([self])
class Attribute:
    def __getattr__(self, name): raise SystemError(name)
try:
    repr(Raises())
except RuntimeError:
    if OUTSIDE: escaped("an exception in repr", "reaches whoever calls it")
# %% a
# status: ok, error
Raises()
# %% a
# status: ok, error
NotText()
# %% a
# status: ok, error, crashed
Exits()
# %% a
# status: ok, error
Html()
# %% a
# status: ok, error
Deep()
# %% a
# status: ok, error
Attribute()
# %% a
# prints: still here
if not OUTSIDE: refused("the end of the session", "still here")
print("still here")
