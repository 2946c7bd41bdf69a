# tries: reach the host's files through /proc/1/root and its sisters
# why: the magic links of a process with another root lead out of ours
path = HOST["files"][0]
for link in ("/proc/1/root", f"/proc/{os.getppid()}/root", "/proc/1/cwd/../../../../../.."):
    attempt(link, lambda: open(link + path).read(8))
for link in ("/proc/self/root", "/proc/thread-self/root", "/proc/self/cwd/../../../../../.."):
    attempt(link, lambda: open(link + path).read(8))
