# tries: link to files of the system in the workspace, and hide copies behind many links
# why: a link to /etc/shadow is the file itself
# check: out_is_plain
# setup: out
# expect: survives
# within: 25
if OUTSIDE:
    source = HOST["files"][0]
else:
    source = "/etc/passwd"
attempt("a hard link", os.link, source, "linked")
with open("one", "w") as f:
    f.write("x" * 1000)
for i in range(100):
    os.link("one", f"link{i}")
