# tries: replace, close and break sys.stdout
# why: what the guest does to its stdout must not cost it the session
# shell: ipython
# outside-ends: session
# %% a
import builtins, io
sys.stdout = None
# %% a
sys.stdout = object()
# %% a
# status: ok, error
sys.stdout = io.StringIO()
print("into nowhere")
# %% a
# status: ok, error
sys.stdout.close()
sys.__stdout__.close()
# %% a
# prints: by the descriptor
os.write(1, (b"ESCAPED: stdout (is whoever sets it)\n" if OUTSIDE else b"REFUSED: the end of the session\n") + b"by the descriptor\n")
