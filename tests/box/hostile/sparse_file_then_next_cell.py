# tries: keep init busy with a file of a terabyte that takes no space, while the session goes on
# why: whoever hashes it is lost for hours: the next cell's files would not be seen
# expect: survives
# check: honest_file_is_listed
# within: 20
# outside-ends: 9
# %% a
with open("giant", "wb") as f:
    f.truncate(1 << 40)
# %% a
with open("honest.txt", "w") as f:
    f.write("honest")
if OUTSIDE:
    os._exit(9 if os.stat("giant").st_size == 1 << 40 else 1)
# %% a
print("still here")
