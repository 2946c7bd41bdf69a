# tries: input(), which has nobody to ask
# outside: none
# %% a
# status: error
# prints: EOF
input("name? ")
# %% a
import sys
try:
    input()
except EOFError as e:
    assert len(str(e)) > 20, f"says no reason: {e!r}"
assert sys.stdin.read() == ""
print("OK")
