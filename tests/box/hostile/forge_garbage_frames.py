# tries: write garbage into the channel to retort
# why: whatever comes from a box is hostile; it may cost the box its session and nothing else
# expect: survives
# status: ok, error, crashed, interrupted
# within: 25
# prints: before the forgery
channel_fd = channel()
print("before the forgery", flush=True)
send(channel_fd, b"\xff" * 4096 + os.urandom(4096))
