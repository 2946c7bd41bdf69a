# tries: give itself capabilities
# why: capset and prctl are the two ways to ask
class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
class Data(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint32 * 6)]
def act():
    full = Data((ctypes.c_uint32 * 6)(1 << 7, 1 << 7, 0, 0, 0, 0))  # CAP_SETUID
    return syscall(126, Header(0x20080522, 0), full)
text, _ = child(act)
(escaped if text == "(0, 0)" else refused)("capset", text)
for name, args in (("PR_CAPBSET_DROP", (24, 0)), ("PR_SET_SECUREBITS", (28, 0))):
    text, _ = child(lambda: syscall(157, *args))
    (escaped if text == "(0, 0)" else refused)(name, text)
