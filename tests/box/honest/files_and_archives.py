# tries: zipfile, tarfile, gzip, shutil, pathlib, os.walk, glob, links of its own
import gzip
import os
import pathlib
import shutil
import tarfile
import zipfile
root = pathlib.Path("tree")
for i in range(3):
    (root / f"d{i}").mkdir(parents=True)
    (root / f"d{i}" / "f.txt").write_text("x" * i)
assert sum(len(files) for _, _, files in os.walk(root)) == 3
shutil.make_archive("all", "zip", root)
with zipfile.ZipFile("all.zip") as z:
    assert z.testzip() is None and "d2/f.txt" in z.namelist()
with tarfile.open("all.tar.gz", "w:gz") as t:
    t.add(root)
shutil.rmtree(root)
with tarfile.open("all.tar.gz") as t:
    t.extractall(".")
assert (root / "d2" / "f.txt").read_text() == "xx"
with gzip.open("a.gz", "wt") as f:
    f.write("text")
shutil.copytree(root, "copy")
os.symlink("all.zip", "link.zip")
assert os.path.getsize("link.zip") == os.path.getsize("all.zip")
os.rename("copy", "moved")
assert sorted(p.name for p in pathlib.Path("moved").glob("*")) == ["d0", "d1", "d2"]
print("OK")
