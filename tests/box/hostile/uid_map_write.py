# tries: rewrite its user mapping
# why: a mapping to uid 0 would make it the box's root
def act():
    if OUTSIDE:
        syscall(272, 0x10000000)
    with open("/proc/self/uid_map", "w") as f:
        f.write("0 0 1" if OUTSIDE else "0 1000 1")
    return "mapped"
text, _ = child(act)
(escaped if text == "mapped" else refused)("uid_map", text)
