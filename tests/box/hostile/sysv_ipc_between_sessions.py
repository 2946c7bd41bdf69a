# tries: System V shared memory, queues and semaphores as a channel
# why: their keys are names in the ipc namespace, which must be the box's own
# outside: host
# %% a
KEY = 0x72657431
for name, number, args in (("shm", 29, (KEY, 4096, 0o1666)), ("msg", 68, (KEY, 0o1666)), ("sem", 64, (KEY, 1, 0o1666))):
    result, error = syscall(number, *args)
    print(name, result, error)
# %% b
KEY = 0x72657431
for name, number, args in (("shm", 29, (KEY, 4096, 0)), ("msg", 68, (KEY, 0)), ("sem", 64, (KEY, 1, 0))):
    result, error = syscall(number, *args)
    (refused if result == -1 else escaped)(f"the other's {name}", errno.errorcode.get(error, result))
    if OUTSIDE and result >= 0:  # IPC_RMID
        syscall({"shm": 31, "msg": 71, "sem": 66}[name], *((result, 0, 0) if name != "sem" else (result, 0, 0, 0)))
