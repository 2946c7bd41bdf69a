# tries: inherit a careless umask
# why: files that the box makes would be writable by every user inside
# setup: umask
old = os.umask(0o22)
found("a umask of 0", old == 0 and "0")
