# tries: pass descriptors to retort over every descriptor that it holds
# why: the receiver runs out of them, or waits in close() for a socket that lingers, and every session with it;
#  5 leads to the box's own init, which holds up nobody else
import array, socket
spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
if OUTSIDE:
    pair = socket.socketpair()
def pass_on(n):
    with socket.socket(fileno=os.dup(n)) as s:
        s.settimeout(2)
        s.sendmsg([b"\0\0\0\0\0\0\0\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", spare))])
for n in [pair[0].fileno()] if OUTSIDE else range(0, 20):
    if OUTSIDE or n not in [5, *spare]:
        attempt(f"descriptors through {n}", pass_on, n)
if not OUTSIDE:
    for _ in range(100):
        pass_on(5)
