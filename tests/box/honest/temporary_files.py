# tries: tempfile in all its forms
import os
import tempfile
with tempfile.NamedTemporaryFile("w+") as f:
    f.write("x")
    f.flush()
    assert os.path.getsize(f.name) == 1
with tempfile.TemporaryDirectory() as d:
    open(os.path.join(d, "a"), "w").close()
    assert os.listdir(d) == ["a"]
assert not os.path.exists(d)
with tempfile.TemporaryFile() as f:
    f.write(b"y" * 1_000_000)
with tempfile.SpooledTemporaryFile(max_size=10) as f:
    f.write(b"z" * 100)
fd, path = tempfile.mkstemp()
os.close(fd)
os.unlink(path)
print("OK")
