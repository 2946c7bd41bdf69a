# tries: change a directory into a symlink and back, as fast as it can, while run -o copies
# why: Judge0's CVE-2024-28189 and runc's races: the path is checked, then another is opened
# check: out_is_plain nothing_beside
# setup: out
# expect: survives
# within: 25
# args: --timeout 20
import time
os.mkdir("dir")
target = os.path.dirname(HOST["files"][0])
for name in ("passwd", os.path.basename(HOST["files"][0])):
    with open("dir/" + name, "w") as f:
        f.write("honest" * 50)
os.symlink("/etc", "other")
with open("file", "w") as f:
    f.write("honest")
os.symlink("/etc/passwd", "file2")
RENAME_EXCHANGE = 2
def swap(a, b):
    syscall(316, -100, a, -100, b, RENAME_EXCHANGE)
if OUTSIDE:
    swap(b"dir", b"other")
    found("the host's file, by the same path", open("dir/passwd").read(4) == "root" and "root")
elif os.fork() == 0:
    end = time.monotonic() + 15
    while time.monotonic() < end:
        swap(b"dir", b"other")
        swap(b"file", b"file2")
    os._exit(0)
