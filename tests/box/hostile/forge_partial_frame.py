# tries: announce a frame of a megabyte and send no more of it
# why: its own messages are then swallowed as that frame's bytes; the time limit must still end the cell
# expect: survives
# args: --timeout 3
# status: crashed, limit, error
# within: 20
# prints: before the forgery
import struct
channel_fd = channel()
print("before the forgery", flush=True)
send(channel_fd, struct.pack("<II", 1 << 20, 17) + b"x" * 100)
