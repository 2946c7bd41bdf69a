# tries: take the processor for itself: real-time scheduling, negative nice, real-time disk priority
# why: a real-time loop starves everyone on that core
def fifo():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
def deadline():
    attributes = ctypes.create_string_buffer(48)
    attributes[0:8] = (48).to_bytes(4, "little") + (6).to_bytes(4, "little")
    attributes[24:48] = b"".join(n.to_bytes(8, "little") for n in (10**6, 10**7, 10**7))
    result, error = syscall(314, 0, attributes, 0)
    if result == -1:
        raise OSError(error, "sched_setattr")
def nice():
    os.setpriority(os.PRIO_PROCESS, 0, -10)
    os.setpriority(os.PRIO_PROCESS, 0, 0)
def disk():
    result, error = syscall(251, 1, 0, 1 << 13 | 0)
    if result == -1:
        raise OSError(error, "ioprio_set")
for name, act in (("SCHED_FIFO", fifo), ("nice -10", nice), ("SCHED_DEADLINE", deadline), ("ioprio real-time", disk)):
    text, _ = child(act)
    if text == "None":
        escaped(name)
    else:
        refused(name, text, maybe=name in ("SCHED_DEADLINE", "SCHED_FIFO"))
