# tries: make files without end
# why: inodes of a tmpfs are kernel memory; there is a limit
# args: --files 200
# within: 60
made = 0
try:
    for i in range(5000):
        os.close(os.open(f"file{i}", os.O_CREAT | os.O_WRONLY))
        made += 1
    escaped("5000 files", made)
except OSError as e:
    refused("5000 files", f"{made}, then {e}")
