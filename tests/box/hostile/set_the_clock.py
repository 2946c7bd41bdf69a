# tries: set the time
# why: there is one clock for all; tokens and logs go by it
def adjust():
    buffer = ctypes.create_string_buffer(256)
    return syscall(159, buffer)  # modes 0: only asks
reach("settimeofday", 164, -1, -1)
reach("clock_settime", 227, 0, -1)
bad = ctypes.create_string_buffer(256)
bad[0:4] = (0x8000).to_bytes(4, "little")  # ADJ_OFFSET_SINGLESHOT without ADJ_ADJTIME: EINVAL for root
reach("adjtimex", 159, bad)
reach("clock_adjtime", 305, 0, bad)
