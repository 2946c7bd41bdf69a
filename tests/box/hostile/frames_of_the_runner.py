# tries: walk up the stack into the runner's own frames, and down its garbage for host paths
# why: tracebacks and frames must not tell where retort lives
# outside: host
import gc, types
if OUTSIDE:
    where = compile("def f(): pass", HOST["repository"] + "/runner.py", "exec")
    exec(where)
names, frame = set(), sys._getframe()
while frame:
    names.add(frame.f_code.co_filename)
    frame = frame.f_back
for thing in gc.get_objects():
    if isinstance(thing, types.FunctionType):
        names.add(thing.__code__.co_filename)
found("host paths in code", [n for n in names if HOST["repository"] in n][:3])
