# tries: leave setuid files, directories without rights, and files that nobody may read
# why: a setuid file copied as root is a gift; an unreadable one must not stop the rest
# check: out_is_plain honest_file_is_out
# setup: out
# expect: survives
# within: 25
with open("tool", "w") as f:
    f.write("#!/bin/sh\nid\n")
os.chmod("tool", 0o6777)
os.mkdir("closed")
with open("closed/inside", "w") as f:
    f.write("x")
with open("unreadable", "w") as f:
    f.write("x")
with open("honest.txt", "w") as f:
    f.write("honest")
os.chmod("unreadable", 0)
os.chmod("closed", 0)
found("a setuid file", OUTSIDE and oct(os.stat("tool").st_mode)) if OUTSIDE else None
