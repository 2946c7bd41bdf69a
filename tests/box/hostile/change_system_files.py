# tries: rename, link, chmod and touch system files
# why: there are more ways to change a file than writing to it
# outside: host
target = "/usr/lib/os-release" if not OUTSIDE else HOST["files"][1]
mode = os.stat(target).st_mode & 0o777
times = os.stat(target).st_atime_ns, os.stat(target).st_mtime_ns
def rename():
    os.rename(target, target + ".x")
    os.rename(target + ".x", target)
def link():
    os.link(target, target + ".x")
    os.unlink(target + ".x")
attempt("rename", rename)
attempt("link", link)
attempt("chmod", os.chmod, target, mode)
attempt("utime", lambda: os.utime(target, ns=times))
attempt("chown", os.chown, target, os.stat(target).st_uid, os.stat(target).st_gid)
# Outside it may lie on a tmpfs, which has no attributes of users before Linux 6.6.
attempt("xattr", lambda: os.setxattr(target, "trusted.retort" if OUTSIDE else "user.retort", b"1"))
attempt("truncate", os.truncate, target, os.stat(target).st_size)
