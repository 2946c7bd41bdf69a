# tries: see the processes of the host
# why: command lines hold passwords, and a pid that can be named can be attacked
# outside: host
import glob
names, foreign = [], []
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        text = open(path, "rb").read()
    except OSError:
        continue
    names.append(text[:40])
    if HOST["process_name"].encode() in text:
        foreign.append(text)
found("the host's process", foreign)
found("more than a few processes", len(names) > 6 and len(names), maybe=True)
