# tries: pass a key to another session
# why: the user's key ring belongs to a uid, not to a process; boxes must share neither
# outside: host
# %% a
result, error = syscall(248, b"user", b"retort-test-key", b"hello", 5, -4)  # the user's key ring
print(result, errno.errorcode.get(error))
# %% b
result, error = syscall(250, 10, -4, b"user", b"retort-test-key", 0)  # KEYCTL_SEARCH
(refused if result == -1 else escaped)("the other's key", errno.errorcode.get(error, result))
if OUTSIDE and result > 0:
    syscall(250, 9, result, -4, 0, 0)  # KEYCTL_UNLINK
