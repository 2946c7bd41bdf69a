# tries: a child that crashes: the session does not mind
import os
import signal
import subprocess
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGSEGV)
assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGSEGV
assert subprocess.run(["python3", "-c", "import os; os.abort()"], stderr=subprocess.DEVNULL).returncode == -6
print("OK")
