# tries: see which pages of shared files are in memory
# why: what another session loads from /usr shows there
import mmap
with open("/usr/bin/python3", "rb") as f:
    view = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ)
    address = ctypes.addressof(ctypes.c_char.from_buffer_copy(b"x")) & ~4095
    reach("mincore", 27, address, 4096, b"\0" * 8)
    reach("cachestat", 451, f.fileno(), b"\0" * 16, b"\0" * 64, 0, maybe=True)
