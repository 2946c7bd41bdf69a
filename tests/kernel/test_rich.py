"""Rich results: tables, pictures, charts of other libraries, progress bars; and values that mean harm."""
import json
import time

from owner import needs
from test_cells import Case, png

TABLE = "application/vnd.retort.table+json"
PLOTLY = "application/vnd.plotly.v1+json"
VEGA = "application/vnd.vegalite.v4+json"


@needs("pandas")
class Tables(Case):
    def table(self, code):
        cell = self.run_ok("import pandas as pd, numpy as np\n" + code)
        self.assertEqual(cell.stderr, "")
        self.assertTrue({"text/plain", "text/html", TABLE} <= set(cell.result), set(cell.result))
        self.assertLessEqual(len(cell.result[TABLE]), 64 << 10)
        return json.loads(cell.result[TABLE], parse_constant=self.fail)

    def test_small(self):
        self.assertEqual(self.table("pd.DataFrame({'a': [1, 2], 'ü': ['x', None]})"), {
            "columns": [{"name": "a", "type": "int64"}, {"name": "ü", "type": "object"}],
            "column_count": 2, "rows": 2, "head": [[1, "x"], [2, None]], "tail": []})

    def test_values(self):
        table = self.table(
            "import datetime, decimal\n"
            "pd.DataFrame({'f': [1.5, np.nan, np.inf], 't': pd.to_datetime(['2020-01-02 03:04', None, '2021-01-01']),\n"
            "  'd': pd.to_timedelta(['1h', None, '2d']), 'c': pd.Categorical(['a', None, 'b']),\n"
            "  'i': pd.array([1, None, 3], dtype='Int64'), 'b': [True, False, True],\n"
            "  'p': pd.period_range('2020-01', periods=3, freq='M'),\n"
            "  'o': [2**70, decimal.Decimal('1.10'), b'\\xff'], 'n': [datetime.date(2020, 1, 1), [1, 2], {'k': np.int8(1)}],\n"
            "  's': ['x' * 300, '\\ud800', '\\x00\\n'], 'u': np.array([2**64 - 1, 1, 2], dtype='uint64')})")
        self.assertEqual(table["head"], [
            [1.5, "2020-01-02T03:04:00", "0 days 01:00:00", "a", 1, True, "2020-01", str(2**70), "2020-01-01",
             "x" * 199 + "…", str(2**64 - 1)],
            [None, None, None, None, None, False, "2020-02", "1.10", "[1, 2]", "?", 1],
            ["inf", "2021-01-01T00:00:00", "2 days 00:00:00", "b", 3, True, "2020-03", "b'\\xff'", "{'k': 1}",
             "\0\n", 2]])

    def test_series_and_index(self):
        table = self.table("pd.Series([3, 4], index=['u', 'v'], name='n')")
        self.assertEqual(table, {"columns": [{"name": "n", "type": "int64"}], "column_count": 1, "rows": 2,
                                 "index": {"columns": [{"name": "", "type": "object"}],
                                           "head": [["u"], ["v"]], "tail": []},
                                 "head": [[3], [4]], "tail": []})
        table = self.table("pd.DataFrame({'k': list('aab'), 'l': [1, 2, 2], 'v': [1., 2., 3.]}).groupby(['k', 'l']).sum()")
        self.assertEqual(table["index"], {"columns": [{"name": "k", "type": "object"}, {"name": "l", "type": "int64"}],
                                          "head": [["a", 1], ["a", 2], ["b", 2]], "tail": []})
        table = self.table("pd.DataFrame(np.eye(2), columns=pd.MultiIndex.from_tuples([('a', 1), ('b', 2)]))")
        self.assertEqual([c["name"] for c in table["columns"]], ["('a', 1)", "('b', 2)"])
        self.table("pd.DataFrame()")
        self.table("pd.DataFrame({'a': []}).set_index('a')")
        self.table("pd.DataFrame([[1, 2]], columns=['a', 'a'])")

    def test_ten_million_rows(self):
        self.run_ok("import pandas as pd, numpy as np\nbig = pd.DataFrame({'a': np.arange(10_000_000), 'b': 0.5})")
        began = time.monotonic()
        table = self.table("big")
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual((table["rows"], len(table["head"]), len(table["tail"])), (10_000_000, 10, 5))
        self.assertEqual((table["head"][0], table["tail"][-1]), ([0, .5], [9_999_999, .5]))
        self.assertNotIn("index", table)

    def test_many_columns_and_long_cells(self):
        table = self.table("pd.DataFrame(np.zeros((20, 20_000)))")
        self.assertEqual((len(table["columns"]), table["column_count"], len(table["head"][0])), (50, 20_000, 50))
        table = self.table("pd.DataFrame({'é' * 300 + str(i): ['€' * 100_000] * 30 for i in range(60)})")
        self.assertLess(len(table["columns"]), 50)
        self.assertEqual(table["column_count"], 60)

    def test_options_that_ask_for_all(self):
        self.run_ok("import pandas as pd, numpy as np\nfor o in ('rows', 'columns', 'colwidth'):\n"
                    "    pd.set_option('display.max_' + o, None)")
        cell = self.run_ok("pd.DataFrame(np.zeros((300_000, 2)))")
        self.assertLess(len(cell.result["text/html"]), 1 << 20)
        self.assertIn("300000 rows x 2 columns", cell.plain)
        self.assertEqual(self.run_ok("pd.get_option('display.max_rows') is None").plain, "True")
        self.assertIn("99 ", self.run_ok("pd.Series(range(100))").plain)

    def test_styled(self):
        cell = self.run_ok("import pandas as pd\npd.DataFrame({'a': [1]}).style") if self.has("jinja2") else None
        if cell:
            self.assertIn("a", cell.plain)
            self.assertIn(TABLE, cell.result)

    def has(self, name):
        return self.run_ok(f"import importlib.util; importlib.util.find_spec('{name}') is not None").plain == "True"

    def test_hostile_cells_and_classes(self):
        cell = self.run_ok("import pandas as pd\n"
                           "class Bad:\n    def __repr__(self): raise ValueError('no')\n    __str__ = lambda s: 'fine'\n"
                           "class Odd(pd.DataFrame):\n    @property\n    def iloc(self): raise OSError('no')\n"
                           "pd.DataFrame({'a': [Bad()]})")
        self.assertEqual(json.loads(cell.result[TABLE])["head"], [["<Bad …>"]])
        cell = self.session.run("Odd({'a': [1]})")
        self.assertIn(cell.status, ("ok", "error"))
        self.assertEqual(self.run_ok("1").plain, "1")


class Pictures(Case):
    @needs("PIL")
    def test_pillow(self):
        self.run_ok("from PIL import Image")
        cell = self.run_ok("Image.new('RGB', (30, 20), 'red')")
        self.assertEqual(png(cell.result["image/png"]), (30, 20))
        self.assertEqual(json.loads(cell.outputs[0][2]), {"image/png": {"width": 30, "height": 20}})
        self.assertIn("size=30x20", cell.plain)
        for mode in ("1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "HSV", "LAB", "I", "F"):
            for size in ((3, 2), (3, 3000)):
                picture = self.run_ok(f"Image.new('{mode}', {size})").result["image/png"]
                self.assertEqual(png(picture)[1], min(size[1], 2000), mode)
        cell = self.run_ok("Image.new('RGB', (8000, 4000))")
        self.assertEqual(png(cell.result["image/png"]), (2000, 1000))
        self.assertEqual(json.loads(cell.outputs[0][2])["image/png"],
                         {"width": 2000, "height": 1000, "full_width": 8000, "full_height": 4000})
        self.assertIn("size=8000x4000", cell.plain)
        self.run_ok("Image.new('RGB', (0, 5))")
        self.assertEqual(self.run_ok("Image.new('RGB', (30, 20)).show()").kinds, ["display"])

    @needs("PIL")
    def test_of_files(self):
        self.run_ok("from PIL import Image as P\nfrom IPython.display import *\nP.new('RGB', (30, 20)).save('a.png')\n"
                    "P.new('RGB', (30, 20)).save('a.jpg')\n"
                    "P.new('L', (9, 7)).save('a.gif', save_all=True, append_images=[P.new('L', (9, 7), 99)], duration=50)")
        cell = self.run_ok("Image('a.png')")
        self.assertEqual(png(cell.result["image/png"]), (30, 20))
        self.assertEqual(self.run_ok("Image(filename='a.jpg')").result["image/jpeg"][:2], b"\xff\xd8")
        cell = self.run_ok("Image('a.gif')")
        self.assertEqual(cell.result["image/gif"][:6], b"GIF89a")
        self.assertEqual(json.loads(cell.outputs[0][2])["image/gif"], {"width": 9, "height": 7})
        cell = self.run_ok("Image('a.png', width=300)")
        self.assertEqual(json.loads(cell.outputs[0][2])["image/png"], {"width": 300, "height": 20})

    @needs("numpy")
    def test_sound_and_film(self):
        cell = self.run_ok("import numpy as np\nfrom IPython.display import *\nAudio(np.zeros(8000), rate=8000)")
        self.assertIn(b"<audio", cell.result["text/html"])
        self.assertIn(b"film.mp4", self.run_ok("open('film.mp4', 'w').close(); Video('film.mp4')").result["text/html"])
        cell = self.run_ok("Audio(np.random.rand(44100 * 600), rate=44100)")
        self.assertNotIn("text/html", cell.result)
        self.assertRegex(cell.plain, r"left out: text/html \(\d+ characters\)")


class Others(Case):
    @needs("sympy")
    def test_sympy(self):
        cell = self.run_ok("import sympy as sp\nx = sp.symbols('x')\nsp.Integral(sp.sqrt(1/x), x)")
        self.assertIn(b"\\int", cell.result["text/latex"])
        self.assertEqual(cell.plain, "Integral(sqrt(1/x), x)")
        self.assertIn(b"matrix", self.run_ok("sp.Matrix([[1, x]])").result["text/latex"])
        self.assertEqual(self.run_ok("sp.solve(x**2 - 4)").plain, "[-2, 2]")

    def test_display_objects(self):
        cell = self.run_ok("from IPython.display import *\ndisplay(Math('x^2'), Code('x = 1'), Pretty('p'))")
        self.assertEqual(cell.displays[0]["text/latex"], b"$\\displaystyle x^2$")

    @needs("plotly")
    def test_plotly(self):
        self.run_ok("import plotly.graph_objects as go, plotly.io as pio\n"
                    "fig = go.Figure(go.Scatter(x=[1, 2], y=[3, 4], name='one'))\n"
                    "fig.add_bar(y=[5]); fig.update_layout(title='T', xaxis_title='ex')")
        for show in ("fig", "fig.show()", "pio.show(fig)", "fig.show('browser')", "fig.show(renderer='colab')",
                     "pio.renderers.default = 'notebook'; fig.show()", "pio.renderers.default = 'vscode'; fig"):
            cell = self.run_ok(show)
            self.assertEqual(cell.kinds, ["display"], (show, cell.stderr))
            self.assertEqual(set(cell.displays[0]), {PLOTLY, "text/plain"})
            self.assertEqual(json.loads(cell.displays[0][PLOTLY])["data"][0]["y"], [3, 4])
            self.assertEqual(cell.displays[0]["text/plain"].decode(),
                             "<plotly chart: 'T'; scatter 'one' (2 points); bar (1 points); x: 'ex'>")

    @needs("plotly", "numpy")
    def test_plotly_is_bounded(self):
        cell = self.run_ok("import plotly.graph_objects as go, numpy as np\n"
                           "go.Figure(go.Scatter(y=np.random.rand(500_000))).show()")
        self.assertNotIn(PLOTLY, cell.displays[0])
        self.assertRegex(cell.displays[0]["text/plain"].decode(),
                         r"scatter \(500000 points\)>\n\[left out: application/vnd.plotly.v1\+json \(\d+ bytes\)\]")

    @needs("plotly", "pandas")
    def test_plotly_express(self):
        cell = self.run_ok("import plotly.express as px, pandas as pd\n"
                           "px.bar(pd.DataFrame({'a': ['x', 'y'], 'b': [1, 2]}), x='a', y='b')")
        self.assertEqual(json.loads(cell.displays[0][PLOTLY])["data"][0]["type"], "bar")

    @needs("altair", "pandas")
    def test_altair(self):
        self.run_ok("import altair as alt, pandas as pd\n"
                    "c = alt.Chart(pd.DataFrame({'a': [1, 2], 'b': [3, 4]}), title='T').mark_bar().encode(x='a', y='b')")
        for show in ("c", "display(c)", "c.show()", "alt.renderers.enable('mimetype'); c", "alt.renderers.enable('html'); c"):
            cell = self.run_ok(show)
            (shown,) = cell.displays or [cell.result]
            self.assertEqual((set(shown), cell.stderr), ({VEGA, "text/plain"}, ""), show)
            self.assertEqual(json.loads(shown[VEGA])["mark"], "bar")
            self.assertEqual(shown["text/plain"].decode(), "<altair chart: 'T'; bar (x: a, y: b)>")
        cell = self.session.run("alt.Chart(pd.DataFrame({'a': range(6000)})).mark_bar()")
        self.assertIn("MaxRowsError", cell.stderr + cell.traceback)

    def test_a_library_of_another_version(self):
        """It is the user's, whether or not we know it."""
        self.run_ok("import os\nos.makedirs('altair'); open('altair/__init__.py', 'w').write('x = 5')\n"
                    "os.makedirs('tqdm'); open('tqdm/__init__.py', 'w').close()\n"
                    "open('tqdm/std.py', 'w').write('raise ImportError(\"broken\")')\n"
                    "import sys; sys.path.insert(0, '.')")
        cell = self.run_ok("import altair; altair.x")
        self.assertEqual(cell.plain, "5")
        self.assertIn("altair may not show its results here", cell.stderr)
        self.assertEqual(self.session.run("import tqdm.std").error[:2], ("ImportError", "broken"))
        self.run_ok("open('tqdm/std.py', 'w').write('class tqdm:\\n    def __init__(self, it=None, mininterval=0): self.m = mininterval')\n"
                    "import importlib, os; importlib.invalidate_caches(); os.utime('tqdm/std.py', (9e8, 9e8))")
        self.assertEqual(self.run_ok("import tqdm.std; tqdm.std.tqdm().m").plain, "1.0")


class Updates(Case):
    def test_do_not_flood(self):
        cell = self.run_ok("from IPython.display import *\nh = display('first', display_id='h')\n"
                           "for i in range(5000): h.update(i)\n'value'")
        self.assertLess(len(cell.displays), 110)
        self.assertEqual([o[1]["text/plain"] for o in cell.outputs][-2:], [b"'value'", b"4999"])
        self.assertEqual(json.loads(cell.outputs[-1][2]), {"display_id": "h", "update": True})
        cell = self.session.run("for i in range(300): h.update(i)\n1/0")
        self.assertEqual((cell.displays[-1]["text/plain"], cell.error[0]), (b"299", "ZeroDivisionError"))
        self.assertEqual(len(self.run_ok("h.update(1); h.update(2)").displays), 2)

    def test_progress_bar(self):
        cell = self.run_ok("from IPython.display import ProgressBar\nfor i in ProgressBar(2000): pass")
        self.assertLess(len(cell.displays), 120)
        self.assertIn(b"2000/2000", cell.displays[-1]["text/plain"])


@needs("tqdm")
class Progress(Case):
    def test_does_not_flood(self):
        for line in ("from tqdm import tqdm", "from tqdm.auto import tqdm", "from tqdm.notebook import tqdm"):
            cell = self.run_ok(f"{line}\nimport time\n"
                               "for i in tqdm(range(60_000)):\n"
                               "    if i % 1000 == 0: time.sleep(0.01)\ni")
            self.assertEqual(cell.plain, "59999")
            self.assertLess(len(cell.stderr), 1000, line)
            self.assertIn("100%", cell.stderr)
            self.assertIn("60000/60000", cell.stderr)

    def test_forms(self):
        cell = self.run_ok("from tqdm.notebook import trange, tqdm_notebook, tqdm\n"
                           "a = [i for i in trange(3)]\nwith tqdm(total=4, desc='d', ncols='50%') as bar: bar.update(4)\na")
        self.assertEqual(cell.plain, "[0, 1, 2]")
        self.assertIn("d: 100%", cell.stderr)
        cell = self.run_ok("from tqdm import tqdm, trange, tqdm_notebook\nimport io\nf = io.StringIO()\n"
                           "for i in tqdm(range(3), 'pos', None, True, f, None, 0): pass\nf.getvalue()")
        self.assertIn("pos:", cell.plain)
        self.assertEqual(self.run_ok("import threading; threading.active_count()").plain, "1")

    @needs("pandas")
    def test_pandas(self):
        cell = self.run_ok("import pandas as pd\nfrom tqdm.auto import tqdm\ntqdm.pandas()\n"
                           "pd.Series(range(9)).progress_apply(lambda v: v + 1).sum()")
        self.assertEqual(cell.plain, "45")
        self.assertIn("9/9", cell.stderr)


class Hostile(Case):
    def test_repr(self):
        self.run_ok("class A:\n    def __init__(self, f): self.f = f\n    def __repr__(self): return self.f()\n"
                    "def forever():\n    while True: pass\ndef deep(): return deep()")
        cell = self.run_ok("A(lambda: 'x' * (600 << 20))")
        self.assertLess(len(cell.plain), 5000)
        self.assertTrue(cell.plain.startswith("xxxx"))
        self.assertIn("[left out: text/plain (629145600 characters)]", cell.plain)
        self.assertEqual(self.session.run("A(lambda: 5)").error[0], "TypeError")
        self.assertEqual(self.session.run("A(lambda: 1/0)").error[0], "ZeroDivisionError")
        self.assertEqual(self.session.run("A(deep)").error[0], "RecursionError")
        self.session.start("A(forever)")
        time.sleep(0.3)
        self.session.interrupt()
        self.assertEqual(self.session.finish().status, "interrupted")
        self.assertEqual(self.run_ok("2").plain, "2")

    def test_parts(self):
        self.run_ok("class B:\n    def __init__(self, b): self.b = b\n    def __repr__(self): return 'B'\n"
                    "    def _repr_mimebundle_(self, **_): return self.b() if callable(self.b) else self.b")
        cell = self.run_ok("B({'image/png': 'no picture', 'image/jpeg': 5, 'text/html': 7})")
        self.assertEqual(set(cell.result), {"text/plain", "text/html"})
        self.assertEqual(cell.plain, "B\n[left out: image/png (neither bytes nor base64), "
                                     "image/jpeg (of type int, not bytes)]")
        cell = self.run_ok("B({'application/json': ['x' * 100] * 100_000})")
        self.assertEqual(cell.plain, "B\n[left out: application/json (10400000 bytes)]")
        cell = self.run_ok("B({f'text/x-{i}': 'y' for i in range(1000)})")
        self.assertLessEqual(len(cell.result), 64)
        for code in ("B([1])", "B(('a', 'b'))", "B(lambda: 1/0)", "B({'application/json': {1: {2: object()}}})",
                     "x = []; x.append(x); B({'application/json': x})", "B(({}, {'text/plain': 5}))",
                     "B(({'image/png': b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 20}, {'image/png': 'odd'}))"):
            self.assertIn(self.session.run(code).status, ("ok", "error"), code)
            self.assertEqual(self.run_ok("3").plain, "3")

    def test_html(self):
        self.run_ok("class C:\n    def __init__(self, h): self.h = h\n    def __repr__(self): return 'C'\n"
                    "    def _repr_html_(self): return self.h()")
        cell = self.run_ok("C(lambda: 1/0)")
        self.assertEqual(cell.plain, "C")
        self.assertIn("ZeroDivisionError", cell.stderr)
        cell = self.run_ok("C(lambda: b'bytes')")
        self.assertEqual(set(cell.result), {"text/plain"})
        self.assertIn("invalid type", cell.stderr)
        cell = self.run_ok("C(lambda: 'h' * (300 << 20))")
        self.assertEqual(cell.plain, "C\n[left out: text/html (314572800 characters)]")
