# tries: take all rights from the workspace, delete it under its feet, and fill its place
# why: the owner's next question about files must get an answer, if only an error
# within: 30
# %% a
# status: ok, error
with open("file", "w") as f:
    f.write("x")
attempt("rename the workspace", os.rename, os.getcwd(), "/tmp/elsewhere" if not OUTSIDE else os.getcwd() + ".x")
attempt("remove it", lambda: os.unlink("file") or os.rmdir(os.getcwd()) if not OUTSIDE else os.unlink("file"))
# %% a
# status: ok, error
try:
    os.chmod("/mnt/data", 0)
except OSError:
    pass
# %% a
# prints: still here
print("still here")
