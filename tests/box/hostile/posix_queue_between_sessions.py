# tries: a POSIX message queue as a channel
# why: its names are of the ipc namespace
# outside: host
# %% a
result, error = syscall(240, b"retort-test-queue", os.O_CREAT | os.O_RDWR, 0o666, 0)
print(result, errno.errorcode.get(error))
# %% b
result, error = syscall(240, b"retort-test-queue", os.O_RDWR, 0, 0)
(refused if result == -1 else escaped)("the other's queue", errno.errorcode.get(error, result))
syscall(241, b"retort-test-queue")
