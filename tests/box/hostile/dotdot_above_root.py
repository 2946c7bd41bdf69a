# tries: climb above the root with ..
# why: a root made by chroot alone gives way to this
# outside: host
for path in HOST["files"]:
    attempt("open " + path, lambda: open("/" + "../" * 64 + path).read(8))
os.chdir("/tmp")
relative = "../" * 64 + HOST["files"][0].lstrip("/")
attempt("open it from /tmp", lambda: open(relative).read(8))
