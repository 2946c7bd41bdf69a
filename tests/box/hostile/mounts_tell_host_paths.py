# tries: learn paths of the host from the mount table
# why: it names the home, the user and the place where retort is installed
if OUTSIDE:
    os.system(f"mount --bind {HOST['directory']} /mnt")
for name in ("mountinfo", "mounts", "mountstats"):
    text = open(f"/proc/self/{name}").read()
    found(f"/proc/self/{name}", [p for p in HOST["private_paths"] if len(p) > 2 and p in text],
          maybe=name != "mountinfo")
