# tries: raise its hard resource limits, and set init's
# why: rlimits are a wall only while they cannot be lifted
import resource
def lift(which):
    hard = resource.getrlimit(which)[1]
    more = resource.RLIM_INFINITY if which != resource.RLIMIT_NOFILE else hard + 1
    if hard == resource.RLIM_INFINITY:
        raise ValueError("there is no limit")
    resource.setrlimit(which, (more, more))
for name in ("NOFILE", "CORE", "MEMLOCK", "SIGPENDING", "NICE", "RTPRIO", "MSGQUEUE"):
    if OUTSIDE:
        which = getattr(resource, "RLIMIT_" + name)
        def lower_and_lift():
            low = 16 if name != "NOFILE" else 256
            resource.setrlimit(which, (low, low))
            lift(which)
        text, _ = child(lower_and_lift)
    else:
        text, _ = child(lift, getattr(resource, "RLIMIT_" + name))
    if text == "None" or "no limit" in text:
        escaped(name, text)
    else:
        refused(name, text, maybe=True)  # root without CAP_SYS_RESOURCE cannot either
attempt("init's limits", resource.prlimit, 1, resource.RLIMIT_NOFILE, (1024, 1024))
