# tries: send frames of every type, empty and with odd contents
# why: the parser of each must stand what its writer would never write
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
import struct
channel_fd = channel()
for kind in list(range(0, 64)) + [255, 65535, 0xFFFFFFFF]:
    for body in (b"", b"\0" * 3, b"\xff" * 40):
        send(channel_fd, struct.pack("<II", len(body), kind) + body)
