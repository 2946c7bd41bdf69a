# tries: ask about mounts by number: statmount, listmount
# why: they answer about mounts that no path leads to
reach("statmount", 457, b"\0" * 32, b"\0" * 64, 64, 0, maybe=True)
reach("listmount", 458, b"\0" * 32, b"\0" * 64, 8, 0, maybe=True)
reach("umount2", 166, b"", 0)
