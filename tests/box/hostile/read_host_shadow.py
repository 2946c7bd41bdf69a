# tries: read the host's password hashes
# why: the first thing that anyone tries
for path in ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/sudoers"):
    attempt(path, lambda: open(path).read(20), maybe=path != "/etc/shadow")
