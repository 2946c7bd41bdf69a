# tries: be the process that waits, with code of its own, and not wake up
# why: init knows whom it lets in by a number, and a program can come to it; it can only hurt its own session
# expect: survives
# outside: none
# within: 60
# %% a
import os, signal, socket, struct, time
kept = 42
# %% a
line = socket.socket(fileno=os.dup(5))
line.settimeout(1)
def wait_with(answers):
    """Ask as keep.c does. The first number is for a go-between, the second is the one."""
    line.send(struct.pack("III", 2, 99, 7))
    print("init says", line.recv(100)[:4], flush=True)
    if os.fork() == 0:
        time.sleep(600)
    pid = os.fork()
    if pid == 0:
        mine, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(line, [struct.pack("II", 3, 7)], [far.fileno()])
        far.close()
        data, fds, *_ = socket.recv_fds(mine, 100, 9)
        if answers:
            new = socket.socket(fileno=fds[4])
            new.send(struct.pack("I", 1))
            os.write(fds[2], b"nonsense" * 100)
        time.sleep(600)
    print("waits as", pid, line.recv(100)[:4], flush=True)
wait_with(False)
# %% a
# status: crashed
# prints: last words
print("last words", flush=True)
os._exit(1)
# %% a
# status: ok, error
import os, socket, struct, time
try:
    kept
except NameError:
    print("another session")
# %% a
# prints: fine
print("fine")
