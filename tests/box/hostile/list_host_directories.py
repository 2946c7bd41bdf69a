# tries: find anything in the directories that belong to the host alone
# why: a read-only view of the system is /usr and a few files of /etc, nothing else
import itertools
for top in ("/root", "/home", "/var", "/run", "/boot", "/srv", "/opt", "/media", "/work"):
    files = (os.path.join(d, f) for d, _, names in os.walk(top) for f in names
             # retort's own Python, and what is known of the fonts in /usr
             if not d.startswith(("/home/user", "/opt/retort", "/var/cache/fontconfig")[:2 + (not OUTSIDE)]))
    found(f"files below {top}", list(itertools.islice(files, 3)), maybe=top not in ("/root", "/var"))
