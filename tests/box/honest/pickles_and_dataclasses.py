# tries: dataclasses, pickle, copy, json, enum, functools, decimal across cells
# %% a
import dataclasses, enum, functools, json, pickle, copy, decimal
class Colour(enum.Enum):
    RED = 1
@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0
    colour: Colour = Colour.RED
# %% a
p = Point(1, 2)
assert pickle.loads(pickle.dumps(p)) == p
assert copy.deepcopy([p]) == [p]
assert json.loads(json.dumps(dataclasses.asdict(p), default=str))["x"] == 1
@functools.lru_cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
assert fib(90) == 2880067194370816120
assert decimal.Decimal("0.1") * 3 == decimal.Decimal("0.3")
print("OK")
