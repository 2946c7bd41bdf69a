# tries: announce a frame of four gigabytes
# why: a reader that believes a length is a reader out of memory
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
# prints: before the forgery
# check: at_ease
import struct
channel_fd = channel()
print("before the forgery", flush=True)
send(channel_fd, struct.pack("<II", 0xFFFFFFF0, 17) + b"x" * 60000)
