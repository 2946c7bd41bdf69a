"""The list of variables: what is in it, that nothing is asked for whole, and that it leaves no trace."""
import json
import time
import unittest

import test_cells
from owner import needs

MIME = "application/vnd.retort.variables+json"


class Case(test_cells.Case):
    def ask(self):
        self.session.ask_variables()
        return self.session.finish()

    def list(self, cell=None):
        cell = cell or self.ask()
        self.assertEqual(cell.status, "ok", cell.error)
        data = cell.displays[-1][MIME]
        self.assertLessEqual(len(data), 1 << 20)
        return json.loads(data)

    def all(self, code):
        """Run it; the variables by name."""
        self.run_ok(code)
        return {v["name"]: v for v in self.list()}

    def texts(self, code):
        return {name: v["text"] for name, v in self.all(code).items()}


class Chosen(Case):
    def test_none_in_a_new_session(self):
        cell = self.ask()
        self.assertEqual(cell.kinds, ["display"])
        self.assertEqual(cell.displays[0], {MIME: b"[]"})
        self.run_ok("1+1\n2+2")
        self.run_ok("3")
        self.assertEqual(self.list(), [])

    def test_only_the_users(self):
        found = self.all("""
import math, os.path as p
from math import sqrt
from collections import Counter, deque as D
from functools import reduce
b = 1
a = 2
_private = 3
def f(x, *y, z=1, **k): return x
class C: pass
g = lambda: 0
add = [].append
In = 'mine'
globals()[5] = 6
C.__module__
""")
        self.assertEqual(list(found), sorted(found))
        self.assertEqual(set(found), {"a", "b", "f", "C", "g", "add", "In"})
        self.assertEqual(found["f"]["type"], "function")
        self.assertEqual(found["f"]["text"], "f(x, *y, z, **k)")
        self.assertEqual(found["C"]["type"], "type")
        self.assertEqual(found["C"]["text"], "<class '__main__.C'>")

    def test_many_are_bounded(self):
        self.run_ok("globals().update((f'v{i:05}' + 'é' * 300, '\\x01' * 500) for i in range(3000))")
        found = self.list()
        self.assertGreater(len(found), 100)
        self.assertLessEqual(len(found), 1000)
        for v in found:
            self.assertEqual(len(v["name"]), 200)
            self.assertLessEqual(len(v["text"]), 200)
        self.run_ok("%reset -f")
        self.run_ok("globals().update((f'v{i:05}', i) for i in range(3000))")
        self.assertEqual([v["name"] for v in self.list()], [f"v{i:05}" for i in range(1000)])


class Described(Case):
    def test_builtin_types(self):
        found = self.all("""
import collections, datetime, enum, dataclasses, fractions
i, x, z, t, n = 5, 0.5, 1j, True, None
s, by, ba = "a\\nb", b"ab", bytearray(3)
l, tu, one, di, se, fs, r = [1, 'a'], (1, 2), (1,), {'a': 1}, {3}, frozenset([4]), range(9)
empty = set()
c = collections.Counter("aab")
dd = collections.defaultdict(list, a=[1])
q = collections.deque([1, 2])
day = datetime.date(2026, 1, 2)
class Color(enum.IntEnum):
    RED = 1
red = Color.RED
Point = collections.namedtuple("Point", "x y")
point = Point(1, [2])
@dataclasses.dataclass
class Data:
    rows: list
    name: str = "n"
data = Data([1])
class Mine:
    def __repr__(self): return "<\\n mine>"
mine = Mine()
class Words(list):
    def __len__(self): return 99
    def __sizeof__(self): return 10**30
    def __repr__(self): return "words"
words = Words(["a"])
keys = di.keys()
""")
        expected = {
            "i": ("int", "5", None), "x": ("float", "0.5", None), "z": ("complex", "1j", None),
            "t": ("bool", "True", None), "n": ("NoneType", "None", None),
            "s": ("str", r"'a\nb'", 3), "by": ("bytes", "b'ab'", 2),
            "ba": ("bytearray", r"bytearray(b'\x00\x00\x00')", 3),
            "l": ("list", "[1, 'a']", 2), "tu": ("tuple", "(1, 2)", 2), "one": ("tuple", "(1,)", 1),
            "di": ("dict", "{'a': 1}", 1), "se": ("set", "{3}", 1), "empty": ("set", "set()", 0),
            "fs": ("frozenset", "frozenset({4})", 1), "r": ("range", "range(0, 9)", 9),
            "c": ("collections.Counter", "Counter({'a': 2, 'b': 1})", 2),
            "dd": ("collections.defaultdict", "defaultdict({'a': [1]})", 1),
            "q": ("collections.deque", "deque([1, 2])", 2),
            "day": ("datetime.date", "datetime.date(2026, 1, 2)", None),
            "red": ("Color", "<Color.RED: 1>", None),
            "point": ("Point", "Point(x=1, y=[2])", 2),
            "data": ("Data", "Data(rows=[1], name='n')", None),
            "mine": ("Mine", "< mine>", None), "words": ("Words", "words", 1),
            "keys": ("dict_keys", "dict_keys(['a'])", None),
        }
        for name, (kind, text, length) in expected.items():
            with self.subTest(name):
                v = found[name]
                self.assertEqual((v["type"], v["text"], v.get("length")), (kind, text, length))
                self.assertNotIn("shape", v)
                self.assertGreater(v["size"], 0)
                self.assertLess(v["size"], 10000)

    @needs("numpy", "pandas")
    def test_arrays_and_tables(self):
        found = self.all("""
import numpy as np, pandas as pd
a = np.arange(6, dtype='float32').reshape(2, 3) / 10
zero, scalar = np.array(5), np.float64(0.5)
words = np.array(['a', 'bc'])
objects = np.array([[1] * 10**6, None], dtype=object)
days = np.array(['2026-01-02'], dtype='datetime64[D]')
df = pd.DataFrame({'city': ['a', 'b'], 'n': [1, 2], 3: [.5, 1]})
s = df['n']
stamp = pd.Timestamp('2026-01-02')
groups = df.groupby('n')
class Sub(np.ndarray):
    shape = nbytes = property(lambda self: 1/0)
sub = a.view(Sub)
""")
        def of(name):
            v = found[name]
            return v["type"], v.get("shape"), v["text"]
        self.assertEqual(of("a"), ("ndarray", [2, 3], "[[0.0, 0.1, 0.2], [0.3, 0.4, 0.5]]"))
        self.assertEqual(found["a"]["size"], 24)
        self.assertEqual(of("zero"), ("ndarray", [], "5"))
        self.assertEqual(of("words"), ("ndarray", [2], "['a', 'bc']"))
        self.assertTrue(of("objects")[2].startswith("[[1, 1, 1, "), of("objects"))
        self.assertEqual(of("days")[2], "[2026-01-02]")
        self.assertEqual(of("df"), ("DataFrame", [2, 3], "city: object, n: int64, 3: float64"))
        self.assertEqual(found["df"]["size"], int(self.run_ok("df.memory_usage().sum()").plain))
        self.assertEqual(of("s"), ("Series", [2], "[1, 2]"))
        self.assertEqual(found["scalar"]["type"], "numpy.float64")
        self.assertNotIn("shape", found["scalar"])
        self.assertEqual(found["stamp"]["type"], "pandas.Timestamp")
        self.assertEqual(of("sub"), ("Sub", [2, 3], "[[0.0, 0.1, 0.2], [0.3, 0.4, 0.5]]"))

    @needs("numpy", "pandas")
    def test_large_ones_are_fast(self):
        self.run_ok("""
import numpy as np, pandas as pd, collections, dataclasses
a = np.zeros(1 << 27)
many = np.zeros((2,) * 26, dtype='i1')
df = pd.DataFrame({'a': np.zeros(10**7), 'b': np.arange(10**7)})
dates = pd.Series(np.arange(10**7)).astype('datetime64[ns]')
index = df.set_index('b').index
wide = pd.DataFrame(np.zeros((2, 20000)))
categories = pd.Series(['a', 'b'] * 10**6).astype('category')
l = [0.5] * 10**7
d = dict.fromkeys(range(10**6), 'x')
c, keys, items, s = collections.Counter(d.keys()), d.keys(), d.items(), set(d)
dd = collections.defaultdict(list, a=l, b=l)
text = 'é' * 10**8
nested = {'l': l, 'df': df, 'a': [a]}
number = 1 << 10**7
@dataclasses.dataclass
class D:
    l: list
data = D(l)
Row = collections.namedtuple('Row', 'l')
row = Row(l)
loop = []; loop.append(loop)
""")
        begun = time.monotonic()
        found = {v["name"]: v for v in self.list()}
        self.assertLess(time.monotonic() - begun, 15)  # the number alone would take a minute to print
        self.assertEqual(found["a"]["shape"], [1 << 27])
        self.assertEqual(found["a"]["size"], 1 << 30)
        self.assertEqual(found["df"]["shape"], [10**7, 2])
        self.assertEqual(found["df"]["size"] // 10000, 16000)
        self.assertEqual(found["wide"]["size"], 320000)
        self.assertEqual(found["l"]["length"], 10**7)
        self.assertTrue(found["l"]["text"].endswith(", …]"), found["l"])
        self.assertEqual(found["number"]["text"], "<int of 10000001 bits>")
        self.assertEqual(found["loop"]["text"], "[[[[[…]]]]]")


class Hostile(Case):
    def test_reprs_that_fail(self):
        found = self.texts("""
class Raises:
    def __repr__(self): raise ValueError('no')
class Leaves:
    def __repr__(self): raise SystemExit(3)
class Number:
    def __repr__(self): return 5
class Text(str):
    def __getitem__(self, i): raise ValueError
    def split(self): return [5]
class Subclass:
    def __repr__(self): return Text('sub')
class Deep:
    def __repr__(self): return repr(self)
class Surrogate:
    def __repr__(self): return '\\ud800\\x00"\\\\'
class Meta(type):
    def __eq__(self, other): raise ValueError
    __hash__ = None
    __name__ = property(lambda self: 1/0)
    def __repr__(self): raise ValueError
    def mro(self): return super().mro()
class Strange(metaclass=Meta):
    __class__ = property(lambda self: 1/0)
    def __getattribute__(self, name): raise ValueError
    def __repr__(self): return 'strange'
def f(): pass
f.__module__ = Raises()
a, b, c, d, e, g, h = Raises(), Leaves(), Number(), Subclass(), Deep(), Surrogate(), Strange()
inside = [a, {b: c}]
""")
        self.assertEqual({n: t for n, t in found.items() if len(n) == 1}, {
            "a": "<Raises …>", "b": "<Leaves …>", "c": "<Number …>", "d": "sub", "e": "<Deep …>",
            "f": "f()", "g": '\\ud800 "\\', "h": "strange"})
        self.assertEqual(found["inside"], "[<Raises …>, {<Leaves …>: <Number …>}]")
        self.assertEqual(found["Strange"], "<Meta …>")

    def test_what_a_repr_prints_is_text(self):
        self.run_ok("class P:\n    def __repr__(self):\n        print('hi')\n        display(1)\n        return 'p'\np = P()")
        cell = self.ask()
        self.assertEqual(cell.stdout, "hi\n")
        self.assertEqual([v["text"] for v in self.list(cell) if v["name"] == "p"], ["p"])

    def test_endless_repr_is_interrupted(self):
        self.run_ok("class E:\n    def __repr__(self):\n        while True: pass\ne = E(); x = 5")
        self.session.ask_variables()
        time.sleep(0.2)
        self.session.interrupt()
        cell = self.session.finish()
        self.assertEqual(cell.status, "interrupted")
        self.assertEqual(self.run_ok("x").plain, "5")

    def test_repr_that_forks_answers_once(self):
        self.run_ok("import os\nclass F:\n    def __repr__(self):\n        os.fork()\n        return 'f'\nf = F()")
        self.assertEqual({v["name"]: v["text"] for v in self.list()}["f"], "f")
        self.assertEqual(self.run_ok("1").plain, "1")

    def test_broken_builtins_and_modules(self):
        self.run_ok("import sys, builtins, json\nx = [1]\njson.encoder = None\n"
                    "del builtins.len, builtins.str, builtins.isinstance, builtins.sorted, sys.modules['collections']")
        self.assertEqual([v["text"] for v in self.list()], ["[1]"])


class Traces(Case):
    def test_no_trace_in_the_history(self):
        self.run_ok("7*6")
        state = "_, _i, len(In), sorted(Out), get_ipython().execution_count"
        self.run_ok("names = set(globals())")
        for _ in range(3):
            self.list()
        self.assertEqual(self.run_ok(state).plain, "(42, 'names = set(globals())', 4, [1], 3)")
        self.assertEqual(self.run_ok("sorted(set(globals()) - names - {'names'})").plain, "['_3', '_i3', '_i4']")

    def test_no_events_and_no_figures(self):
        self.run_ok("ip = get_ipython()\nfor e in ('pre_execute', 'post_execute', 'pre_run_cell', 'post_run_cell'):\n"
                    "    ip.events.register(e, lambda *a: print('event'))")
        self.assertEqual(self.ask().stdout, "")

    @needs("matplotlib")
    def test_figures_wait_for_a_cell(self):
        self.run_ok("class P:\n    def __repr__(self):\n        import matplotlib.pyplot as plt\n"
                    "        plt.plot([1]); return 'p'\np = P()")
        self.assertEqual([list(d) for d in self.ask().displays], [[MIME]])
        self.assertIn("image/png", self.run_ok("0").displays[0])

    def test_errors_of_it_are_not_the_last_error(self):
        self.session.run("1/0")
        self.run_ok("class E:\n    def __repr__(self): raise KeyboardInterrupt\ne = E()")
        self.assertEqual(self.ask().status, "interrupted")
        self.assertEqual(self.run_ok("import sys; sys.last_type.__name__").plain, "'ZeroDivisionError'")


if __name__ == "__main__":
    unittest.main()
