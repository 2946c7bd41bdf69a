# tries: write capabilities and trusted attributes onto files
# why: a file with capabilities is a setuid program by another name
import struct
open("tool", "w").close()
value = struct.pack("<IIIII", 0x02000001, 1 << 21, 0, 0, 0)
attempt("security.capability", lambda: os.setxattr("tool", "security.capability", value))
attempt("trusted.x", lambda: os.setxattr("tool", "trusted.x", b"1"))
