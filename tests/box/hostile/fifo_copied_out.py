# tries: leave pipes and sockets in the workspace, to be opened by run -o
# why: opening a pipe waits for ever for its other end
# check: out_is_plain honest_file_is_out
# setup: out
# expect: survives
# within: 25
# outside-ends: timeout
# outside-within: 3
import socket
os.mkfifo("pipe")
os.mkfifo("pipe.csv")
socket.socket(socket.AF_UNIX).bind("socket")
with open("honest.txt", "w") as f:
    f.write("honest")
if OUTSIDE:
    open("pipe").read()
