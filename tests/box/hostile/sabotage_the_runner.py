# tries: break the interpreter that runs the next cell: builtins, modules, IPython's own parts
# why: it may ruin its own session, never hang its owner; the status must be truthful
# expect: survives
# args: --timeout 10
# within: 25
# outside-ends: 1
# status: ok, error, crashed
print("before the sabotage", flush=True)
try:
    shell = get_ipython()
    shell.run_cell = shell.displayhook = shell.display_pub = shell.showtraceback = None
    shell.user_ns = None
except NameError:
    pass
import builtins
for name in list(sys.modules):
    if name not in ("sys", "builtins"):
        sys.modules[name] = None
for name in list(vars(builtins)):
    if name not in ("list", "vars", "setattr", "delattr", "__import__", "print"):
        delattr(builtins, name)
print(len("nothing left"))
