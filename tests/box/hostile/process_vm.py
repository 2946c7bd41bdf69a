# tries: read and write the memory of init
# why: the same as ptrace, without attaching
buffer = ctypes.create_string_buffer(64)
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
here = Vector(ctypes.addressof(buffer), 64)
for name, number in (("process_vm_readv", 310), ("process_vm_writev", 311)):
    reach(name, number, 1, here, 1, here, 1, 0)
reach("process_madvise", 440, -1, here, 1, 20, 0)
