# tries: fill the workspace
# why: its size is a limit of the session
# args: --disk 16m
block = os.urandom(1 << 20)
written = 0
try:
    with open("big", "wb") as f:
        while written < 64 << 20:
            written += f.write(block)
    escaped("64 MB in the workspace", written)
except OSError as e:
    refused("64 MB in the workspace", f"{written >> 20} MB, then {e}")
    if written < 8 << 20:
        wrong("the workspace is smaller than its limit", written)
