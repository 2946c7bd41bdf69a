# tries: file names with newlines, terminal escapes, broken UTF-8, leading dashes, and of full length
# why: names are the guest's text: they must not break the JSON, the terminal or the copying
# check: out_is_plain nothing_beside honest_file_is_out
# setup: out
# expect: survives
# within: 25
names = [b"new\nline", b"esc\x1b[2J\x1b]0;owned\x07", b"\xff\xfe\x80", b"-rf", b"--help", b"n" * 255, b"...", b"..x",
         b" ", b"quote\"'`$(id)", b"back\\slash", "\u202eexe.txt".encode(), b".hidden", b"con", b"a:b", b"*", b"\x7f"]
for name in names:
    with open(os.path.join(b".", name), "wb") as f:
        f.write(b"x")
with open("honest.txt", "w") as f:
    f.write("honest")
if OUTSIDE:
    listing = os.popen("ls -N | tr -d '\\200-\\377'").read()
    found("a listing with a terminal escape and a false line", "\x1b[2J" in listing and "line\n" in listing)
