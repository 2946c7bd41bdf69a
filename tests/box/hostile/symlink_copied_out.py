# tries: leave symlinks to files of the host, to be followed by run -o
# why: Judge0's CVE-2024-28185: the server follows a link that the guest made
# check: out_is_plain nothing_beside honest_file_is_out
# setup: out
# expect: survives
# within: 25
import shutil
os.symlink("/etc/passwd", "passwd")
os.symlink(HOST["files"][0], "secret")
os.symlink("../" * 32 + HOST["files"][0], "climbing")
os.symlink(HOST["directory"], "directory")
os.symlink("/proc/self/root" + HOST["files"][0], "magic")
os.symlink("loop", "loop")
with open("honest.txt", "w") as f:
    f.write("honest")
if OUTSIDE:
    os.unlink("loop")
    shutil.copy("secret", "../naive-copy")
    found("the host's file, by a naive copy", open("../naive-copy").read(8))
    os.unlink("../naive-copy")
