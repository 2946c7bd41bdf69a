# tries: take the processors away from pid 1
# why: init watches the limits where there are no cgroups
def on_us(pid):
    return os.getpid() if OUTSIDE else pid
attempt("its priority", lambda: os.setpriority(os.PRIO_PROCESS, on_us(1), 19))
attempt("its cores", lambda: os.sched_setaffinity(on_us(1), os.sched_getaffinity(on_us(1))))
attempt("its policy", lambda: os.sched_setscheduler(on_us(1), os.SCHED_IDLE, os.sched_param(0)))
