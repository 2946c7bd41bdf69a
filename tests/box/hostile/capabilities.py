# tries: hold capabilities
# why: none at all, in any set, and no way to gain one
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
for name in ("CapPrm", "CapEff", "CapBnd"):
    found(name, int(status[name], 16) and status[name].strip())
found("no_new_privs is off", status["NoNewPrivs"].strip() == "0")
found("no seccomp filter", status["Seccomp"].strip() != "2" and status["Seccomp"].strip())
found("supplementary groups", [g for g in os.getgroups() if g != os.getgid()] , maybe=True)
