# tries: read and write /sys
# why: it describes the hardware and the host, and parts of it are switches
found("entries of /sys", os.path.isdir("/sys") and os.listdir("/sys")[:5])
attempt("/sys/kernel", lambda: os.listdir("/sys/kernel")[:3])
attempt("/sys/fs/cgroup", lambda: os.listdir("/sys/fs/cgroup")[:3])
