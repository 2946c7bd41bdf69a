# tries: learn the host's users
# why: the contract says: no host name, user or path of the host
# outside: host
import hashlib, pwd
def same():
    return hashlib.sha256(open("/etc/passwd", "rb").read()).hexdigest() == HOST["passwd_sha256"]
found("the host's /etc/passwd", os.path.exists("/etc/passwd") and same())
found("its people", [p.pw_name for p in pwd.getpwall() if p.pw_name in HOST["people"]], maybe=True)
