# tries: shut its channel down for writing and go on
# why: the owner sees an end while the process lives: it must not wait for it
# expect: survives
# status: ok, crashed, error
# within: 25
# outside-ends: 9
import socket, stat, time
if OUTSIDE:
    pair = socket.socketpair()
for n in range(3, 1024):
    try:
        if stat.S_ISSOCK(os.fstat(n).st_mode):
            socket.socket(fileno=os.dup(n)).shutdown(socket.SHUT_RDWR)
            if OUTSIDE and pair[1].recv(1) == b"":
                os._exit(9)
    except OSError:
        pass
time.sleep(60)
