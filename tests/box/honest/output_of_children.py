# tries: children and C code that write to stdout and stderr themselves
# prints: from a child
# prints: from the descriptor
# prints: to stderr
# prints: last
import os
import subprocess
import sys
print("first", flush=True)
subprocess.run(["echo", "from a child"])
os.write(1, b"from the descriptor\n")
print("to stderr", file=sys.stderr)
os.write(1, b"broken \xff\xfe text\n")
print("last")
print("OK")
