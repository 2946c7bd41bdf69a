# tries: read the kernel's log
# why: it holds addresses and the doings of others
reach("syslog(READ_ALL)", 103, 3, b"\0" * 64, 64)
reach("syslog(SIZE_BUFFER)", 103, 10, 0, 0)
attempt("/dev/kmsg", lambda: os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK), maybe=True)
