# tries: gain rights by running setuid programs
# why: no_new_privs and nosuid mounts must both be there
import shutil, subprocess
if OUTSIDE:
    shutil.copy("/usr/bin/id", "/dev/shm/retort-test-id")
    os.chmod("/dev/shm/retort-test-id", 0o4755)
    who = subprocess.run(["/dev/shm/retort-test-id"], user=65534, capture_output=True, text=True).stdout
    os.unlink("/dev/shm/retort-test-id")
    found("a setuid program's rights", "euid=0" in who and who.strip())
else:
    shutil.copy("/usr/bin/id", "/tmp/id")
    os.chmod("/tmp/id", 0o6755)
    who = subprocess.run(["/tmp/id"], capture_output=True, text=True).stdout
    found("rights by a setuid program of its own", "euid=" in who and who)
    for path in ("/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd"):
        if os.path.exists(path):
            done = subprocess.run([path, "-c", "id"] if path.endswith("su") else [path, "-t", "tmpfs", "x", "/tmp"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10)
            found(path, "uid=0" in done.stdout and done.stdout)
no = [l.split()[4] for l in open("/proc/self/mountinfo") if "nosuid" not in l.split()[5].split(",")]
found("mounts that allow setuid programs", no)
