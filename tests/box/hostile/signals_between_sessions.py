# tries: signal and open processes of another session by number
# why: pids of one box mean nothing in another
# outside: host
# %% a
print("PID", os.getpid())
open("/tmp/retort-test-pid", "w").write(str(os.getpid()))
# %% b
try:
    other = int(open("/tmp/retort-test-pid").read())
    os.unlink("/tmp/retort-test-pid")
except OSError:
    other = None
if other is None:
    refused("the other's pid", "not told")
else:
    attempt("signalling it", os.kill, other, 0)
pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
found("more processes than its own", not OUTSIDE and len(pids) > 6 and pids, maybe=True)
