# tries: make system calls through the 32-bit gate (int 0x80)
# why: 32-bit numbers mean other calls; a filter that forgets the architecture is no filter
# arch: x86_64
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3")  # push rbx; eax = 20 (getpid); int 0x80; pop rbx; ret
run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
text, death = child(lambda: run() == os.getpid() and "answered" or "not answered")
if death == signal.SIGSYS:
    refused("getpid by int 0x80", "killed by SIGSYS")
elif text == "answered":
    escaped("getpid by int 0x80", text)
else:
    refused("getpid by int 0x80", f"{text} {death}", maybe=True)
