# tries: io_uring
# why: it does by ring what the filter forbids by call, and its record is long
reach("io_uring_setup", 425, 4, b"\0" * 120)
reach("io_uring_enter", 426, -1, 0, 0, 0, 0, 0)
reach("io_uring_register", 427, -1, 0, 0, 0)
