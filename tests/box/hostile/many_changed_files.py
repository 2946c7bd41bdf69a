# tries: change every file in every cell, up to the limit of files
# why: the list of changes with hashes must not take longer than the cell itself is worth
# within: 40
# expect: survives
# check: short
# outside-ends: 9
for i in range(9000):
    with open(f"f{i}", "w") as f:
        f.write(str(i))
if OUTSIDE:
    os._exit(9)
