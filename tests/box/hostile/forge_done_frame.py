# tries: say that its cell, and cells that were never asked for, are done
# why: a forged end must not confuse the owner about other cells, or make it wait for ever
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
import struct, time
channel_fd = channel()
for n in (0, 1, 2, 77, 0xFFFFFFFF):
    send(channel_fd, struct.pack("<IIIBI", 9, 19, n, 0, 0))
    send(channel_fd, struct.pack("<IIIBI", 9, 19, n, 255, 0))
time.sleep(1)
print("still running")
