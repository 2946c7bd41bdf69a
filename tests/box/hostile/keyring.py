# tries: the kernel's key rings
# why: keys live outside of every namespace but the user's, and cost kernel memory
reach("add_key", 248, b"user", b"retort-test", b"x", 1, -2)  # its own process key ring
reach("request_key", 249, b"user", b"retort-none", 0, -2)
reach("keyctl", 250, 0, -3, 0, 0, 0)  # KEYCTL_GET_KEYRING_ID of the session's
attempt("/proc/keys", lambda: open("/proc/keys").read(20), maybe=True)
