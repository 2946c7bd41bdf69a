# tries: swap, quotas, process accounting
# why: settings of the whole machine
reach("swapon", 167, b"/nonexistent", 0)
reach("swapoff", 168, b"/nonexistent")
reach("quotactl", 179, -1, b"/nonexistent", 0, 0)
reach("quotactl_fd", 443, -1, -1, 0, 0)
reach("acct", 163, b"/nonexistent")
reach("sethostname", 170, b"x", -1)
reach("setdomainname", 171, b"x", -1)
