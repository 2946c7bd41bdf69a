# tries: send tens of thousands of displays, well-formed and not
# why: displays are kept in the cell: their number and size must be bounded
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
# check: at_ease short
import struct
channel_fd = channel()
def field(data):
    return struct.pack("<I", len(data)) + data
good = struct.pack("<B", 0) + field(b"{}") + struct.pack("<I", 1) + field(b"text/plain") + field(b"x" * 1000)
bad = struct.pack("<B", 9) + field(b"{not json") + struct.pack("<I", 0xFFFFFFFF) + field(b"\xff\xfe" * 50) + field(b"")
for body in (good, bad):
    one = struct.pack("<II", len(body), 17) + body
    send(channel_fd, one)
    if not OUTSIDE:
        for _ in range(600):
            os.write(channel_fd, one * 60)
