# tries: watch shared files for what other sessions open and read
# why: it is both a spy (what does the neighbour import?) and a channel
# %% a
watcher = syscall(294, 0o4000)[0]  # inotify_init1(IN_NONBLOCK)
if watcher < 0 or syscall(254, watcher, b"/usr/bin/sort" if OUTSIDE else b"/usr/bin/uniq", 0x21)[0] < 0:  # IN_OPEN | IN_ACCESS
    refused("a watch on a shared file", "not allowed")
# %% b
for _ in range(3):
    with open("/usr/bin/sort" if OUTSIDE else "/usr/bin/uniq", "rb") as f:
        f.read()
# %% a
import time
time.sleep(0.3)
try:
    found("the other's reading, by inotify", os.read(watcher, 4096))
except OSError as e:
    refused("the other's reading, by inotify", e)
