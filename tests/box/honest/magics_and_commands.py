# tries: %magics, !commands, %%bash, %%time, %%writefile, shell variables
# shell: ipython
# %% a
%timeit -n 1 -r 1 sum(range(100))
files = !seq 1 3
assert list(files) == ["1", "2", "3"], files
name = "world"
!echo hello $name
# %% a
%%bash
echo from bash $((6 * 7)) > bash.txt
# %% a
%%writefile module_of_mine.py
def answer():
    return 42
# %% a
from module_of_mine import answer
assert answer() == 42
assert open("bash.txt").read() == "from bash 42\n"
%cd /tmp
import os
assert os.getcwd() == "/tmp"
%cd -
# %% a
%%time
print("OK")
