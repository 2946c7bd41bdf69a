# tries: find descriptors that the box inherited
# why: one forgotten descriptor of a directory was runc's CVE-2024-21626
# setup: leak
import stat
seen = []
for n in range(1024):
    try:
        status = os.fstat(n)
    except OSError:
        continue
    target = os.readlink(f"/proc/self/fd/{n}")
    harmless = n <= 2 or stat.S_ISSOCK(status.st_mode) or target.startswith(("anon_inode:", "/mnt/data"))
    if not harmless and not stat.S_ISFIFO(status.st_mode):
        seen.append((n, target))
found("an inherited descriptor", [s for s in seen if "program.py" not in s[1] and "/dev/pts" not in s[1]])
