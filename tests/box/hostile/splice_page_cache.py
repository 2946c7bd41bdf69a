# tries: splice, tee and vmsplice
# why: "dirty pipe" wrote to read-only files through them; Docker's list, which allows them, is not one
#      to copy
reach("splice", 275, -1, 0, -1, 0, 1, 0)
reach("tee", 276, -1, -1, 1, 0)
reach("vmsplice", 278, -1, b"\0" * 16, 1, 0)
