# tries: learn paths of the host from the interpreter: modules, sys.path, arguments, mapped files
# why: the contract says: no host name, user or path of the host
# outside: host
if OUTSIDE:
    sys.path.append(HOST["directory"])
    os.environ["WHERE"] = HOST["repository"]
def private(texts):
    return [t for t in map(str, texts) if any(len(p) > 2 and p in t for p in HOST["private_paths"])][:3]
modules = [getattr(m, "__file__", None) for m in list(sys.modules.values())]
found("modules", private(modules), maybe=True)
found("sys.path", private(sys.path))
found("arguments", private(sys.argv + getattr(sys, "orig_argv", []) + [sys.executable, sys.prefix]), maybe=True)
found("command lines", private([open("/proc/self/cmdline").read()]), maybe=True)
def command_line(pid):
    return open(f"/proc/{pid}/cmdline").read().replace("\0", " ").strip()
found("command lines of all", private(map(command_line, filter(str.isdigit, os.listdir("/proc")))), maybe=True)
found("command line of init", [text for text in [command_line(1)] if text != "retort"], maybe=True)
found("os.environ", private(os.environ.values()))
found("mapped files", private(open("/proc/self/maps").read().splitlines()), maybe=True)
found("code objects", private({f.f_code.co_filename for f in sys._current_frames().values()}), maybe=True)
