# tries: take descriptors out of init
# why: init holds the sockets to retort
def take():
    fd = os.pidfd_open(1)
    result, error = syscall(438, fd, 0, 0)
    if result == -1:
        raise OSError(error, "pidfd_getfd")
    return result
attempt("pidfd_getfd", take)
reach("kcmp", 312, os.getpid(), 1, 0, 0, 0)
