# tries: learn physical addresses from /proc/self/pagemap and /proc/iomem
# why: physical addresses are what rowhammer and kernel exploits need
import ctypes, struct
page = ctypes.create_string_buffer(b"x" * 8192)
def frame():
    with open("/proc/self/pagemap", "rb") as f:
        f.seek((ctypes.addressof(page) + 4096) // 4096 * 8)
        number = struct.unpack("Q", f.read(8))[0] & ((1 << 55) - 1)
    if not number:
        raise PermissionError(1, "zero")
    return number
attempt("pagemap", frame)
attempt("iomem", lambda: any(int(l.split("-")[0], 16) for l in open("/proc/iomem")) or os.stat("/nonexistent"))
