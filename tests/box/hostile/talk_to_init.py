# tries: talk nonsense on the line to init, answer in its place, close it
# why: what is said there costs the session its own checkpoints, and nothing else
# expect: survives
# outside: none
# within: 60
# %% a
import os, random, socket, struct
kept = 42
line = socket.socket(fileno=os.dup(5))
line.setblocking(False)
def say(data, fds=()):
    try:
        socket.send_fds(line, [data], fds) if fds else line.send(data)
    except OSError as e:
        return e.errno
# %% a
for _ in range(2000):
    say(os.urandom(random.randrange(1, 300)))
for kind in range(64):
    say(struct.pack("I", kind))
    say(struct.pack("III", kind, 1, 1))
    say(struct.pack("III", kind, 1, 1), [0, 1, 2])
    say(struct.pack("IIIIIIII", kind, *range(7)), [os.open("/", os.O_PATH)])
answers = 0
try:
    while True:
        line.recv(65536)
        answers += 1
except OSError:
    pass
print("said", answers >= 0)
# %% a
# status: crashed
os._exit(1)
# %% a
# status: ok, error
kept
# %% a
import os
os.close(5)
mine = os.open("/dev/null", os.O_RDWR)
os.dup2(mine, 5)
other = 43
# %% a
# status: crashed
import os
os.abort()
# %% a
# prints: here
print("here")
