# tries: threads, processes, sockets and pipes, which cannot be carried over
# within: 60
# %% a
import os, socket, subprocess, threading
stop = threading.Event()
thread = threading.Thread(target=stop.wait, name="the counter", daemon=True)
thread.start()
process = subprocess.Popen(["sleep", "1000"])
server = socket.create_server(("127.0.0.1", 0))
pipe = os.pipe()
# %% a
# status: crashed
# restored: 1
os.abort()
# %% a
# prints: retort: lost when the session was restored: thread the counter
# prints: (sleep)
# prints: socket
# prints: pipe
assert not thread.is_alive()
try:
    server.getsockname()
except OSError:
    print("no socket any more")
server.close()
os.close(pipe[0])
# %% a
try:
    os.write(pipe[1], b"x")
except OSError:
    os.close(pipe[1])
def name(process):
    try:
        return open(f"/proc/{process}/comm").read()
    except OSError:  # it has ended since
        return ""
assert not [p for p in os.listdir("/proc") if p.isdigit() and name(p) == "sleep\n"]
again = socket.create_server(("127.0.0.1", 0))
print("OK")
