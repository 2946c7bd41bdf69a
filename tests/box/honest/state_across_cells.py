# tries: generators, classes, closures, imports and errors across cells
# %% a
import itertools
class Account:
    def __init__(self): self.balance = 0
    def deposit(self, n):
        self.balance += n
        return self
def numbers():
    yield from itertools.count()
g = numbers()
next(g), next(g)
# %% a
assert next(g) == 2
account = Account().deposit(5)
# %% a
# status: error
account.deposit(5)
1 / 0
# %% a
assert account.balance == 10 and next(g) == 3
class Savings(Account):
    pass
assert isinstance(Savings().deposit(1), Account)
def counter():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    return up
up = counter()
# %% a
assert [up(), up()] == [1, 2]
_
# %% a
print("OK")
