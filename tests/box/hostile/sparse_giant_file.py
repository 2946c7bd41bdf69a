# tries: make a file of a terabyte that takes no space, to be hashed and copied out
# why: whoever believes its size reads for hours, or fills the host's disk
# setup: out
# check: out_is_plain honest_file_is_out
# expect: survives
# status: ok, error
# within: 20
try:
    with open("giant", "wb") as f:
        f.truncate(1 << 40)
    if OUTSIDE:
        found("a file of a terabyte", os.stat("giant").st_size == 1 << 40 and os.stat("giant").st_blocks == 0)
except OSError as e:
    print("refused:", e)
with open("honest.txt", "w") as f:
    f.write("honest")
