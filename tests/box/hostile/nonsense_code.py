# tries: cells that are no Python: null bytes, lone surrogates, a million brackets, endless lines
# why: the parser's errors are answers; its crashes are the box's own
# outside-ends: session
# within: 60
# %% a
x = "\ud800"; print(x)  # text that is not UTF-8 is never an error
# %% a
# status: error, crashed
eval("(" * 5000)
# %% a
# status: error, ok, crashed
exec("x = " + "-" * 50000 + "1")
# %% a
# status: error
compile("a\0b", "x", "exec")
# %% a
if OUTSIDE: os._exit(1)
refused("the end of the session", "still here")
