# tries: use up the inotify instances of whoever started retort
# why: Linux counts those of a user namespace against its maker too, and he has 128
taken = [fd for number in (253, 294) for fd in [syscall(number, 0)[0]] if fd >= 0]  # inotify_init, inotify_init1
found("instances of inotify", taken)
