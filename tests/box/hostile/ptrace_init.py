# tries: attach to init as a debugger
# why: a debugger of init is init
PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_DETACH = 16, 0x4206, 17
def trace(request):
    result, error = syscall(101, request, 1, 0, 0)
    if result == -1:
        raise OSError(error, "ptrace")
    os.waitpid(1, 0x40000000) if request == PTRACE_ATTACH else None
    return syscall(101, PTRACE_DETACH, 1, 0, 0)
attempt("PTRACE_ATTACH", trace, PTRACE_ATTACH)
text, _ = child(lambda: syscall(101, PTRACE_SEIZE, 1, 0, 0))
(refused if text.startswith("(-1") else escaped)("PTRACE_SEIZE", text)
