# tries: make namespaces by clone(2), alone and mixed with honest flags
# why: a filter that looks at unshare alone leaves this door open
def act(flags):
    result, error = syscall(56, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if result == 0:
        os._exit(0)
    if result > 0:
        os.waitpid(result, 0)
        return "made"
    return errno.errorcode[error]
for name, flags in (("NEWUSER", 0x10000000), ("NEWNS", 0x20000), ("NEWCGROUP", 0x2000000),
                    ("NEWUTS", 0x4000000), ("NEWIPC", 0x8000000), ("NEWPID", 0x20000000),
                    ("NEWNET", 0x40000000), ("all of them", 0x7e020000), ("NEWUSER|VFORK", 0x10004000),
                    ("NEWUSER with high bits", 0x700000010000000 | 0x10000000)):
    text, _ = child(act, flags)
    (escaped if text == "made" else refused)("clone " + name, text)
