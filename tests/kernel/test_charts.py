"""Figures: the picture within bounds, and what is drawn as data."""
import json

import test_cells
from owner import needs
from test_cells import png

CHART = "application/vnd.retort.chart+json"


class Case(test_cells.Case):
    def setUp(self):
        super().setUp()
        self.run_ok("import matplotlib.pyplot as plt, numpy as np")

    def chart(self, code):
        """The figure that the code leaves open."""
        cell = self.run_ok(code + "\nNone")
        self.assertEqual(cell.kinds, ["display"], cell.stderr)
        self.assertLessEqual(len(cell.displays[0][CHART]), 32 << 10)
        png(cell.displays[0]["image/png"])
        return json.loads(cell.displays[0][CHART])

    def axes(self, code):
        (axes,) = self.chart(code)["axes"]
        return axes

    def series(self, code):
        (series,) = self.axes(code)["series"]
        return series


@needs("matplotlib")
class Kinds(Case):
    def test_lines_and_axes(self):
        chart = self.chart("plt.figure(figsize=(5, 3)); plt.suptitle('all')\nplt.plot([1, 2, 3], [4, 5.5, 6], label='a')\n"
                           "plt.plot([1, 2], [5, 4], 'o'); plt.title('t'); plt.xlabel('X'); plt.ylabel('Y'); plt.legend()\n"
                           "plt.yscale('log'); plt.xlim(0, 4); plt.axhline(5, label='mean'); plt.axvline(2)\n"
                           "plt.annotate('top', (3, 6))")
        self.assertEqual((chart["size"], chart["dpi"], chart["title"]), ([5, 3], 100, "all"))
        (axes,) = chart["axes"]
        self.assertEqual([axes[name] for name in ("title", "xlabel", "ylabel", "xscale", "yscale", "xlim", "legend")],
                         ["t", "X", "Y", "linear", "log", [0, 4], ["a"]])
        self.assertEqual(axes["series"], [
            {"kind": "line", "label": "a", "points": 3, "x": [1, 2, 3], "y": [4, 5.5, 6]},
            {"kind": "scatter", "label": None, "points": 2, "x": [1, 2], "y": [5, 4]},
            {"kind": "hline", "label": "mean", "y": 5},
            {"kind": "vline", "label": None, "x": 2}])
        self.assertEqual(axes["texts"], [{"x": 3, "y": 6, "text": "top"}])

    def test_bars(self):
        axes = self.axes("plt.bar(['ä', 'b'], [1, 2.5])")
        self.assertEqual(axes["series"], [{"kind": "bar", "label": None, "points": 2, "x": ["ä", "b"], "y": [1, 2.5]}])
        self.assertEqual(axes["xticks"], [[0, "ä"], [1, "b"]])
        self.assertEqual(self.series("plt.barh(['a', 'b'], [3, 4])"),
                         {"kind": "bar", "label": None, "points": 2, "horizontal": True, "x": [3, 4], "y": ["a", "b"]})
        self.assertEqual(self.series("plt.bar([1, 2], [3, 4], bottom=[1, 1], width=.5)"),
                         {"kind": "bar", "label": None, "points": 2, "x": [1, 2], "y": [3, 4], "base": [1, 1]})

    def test_histogram(self):
        self.assertEqual(self.series("plt.hist([1, 1, 2, 5], bins=[0, 2, 4, 6])"),
                         {"kind": "hist", "label": None, "points": 3, "edges": [0, 2, 4, 6], "y": [2, 1, 1]})

    def test_others(self):
        self.assertEqual(self.series("plt.scatter([1, 2], [3, 4], c=[7, 8], label='s')"),
                         {"kind": "scatter", "label": "s", "points": 2, "x": [1, 2], "y": [3, 4], "values": [7, 8]})
        self.assertEqual(self.series("plt.pie([1, 3], labels=['p', 'q'])"),
                         {"kind": "pie", "points": 2, "labels": ["p", "q"], "fractions": [0.25, 0.75]})
        image = self.series("plt.imshow([[1, 2], [3, 4]])")
        self.assertEqual((image["kind"], image["shape"], image["range"], image["values"]),
                         ("image", [2, 2], [1, 4], [[1, 2], [3, 4]]))
        picture = self.series("plt.imshow(np.zeros((30, 20, 3)))")
        self.assertEqual((picture["shape"], "values" in picture), ([30, 20, 3], False))
        mesh = self.series("plt.pcolormesh(np.arange(6).reshape(2, 3))")
        self.assertEqual((mesh["kind"], mesh["values"]), ("heatmap", [[0, 1, 2], [3, 4, 5]]))
        self.assertEqual(self.series("plt.fill_between([1, 2], [3, 4])")["kind"], "area")
        self.assertEqual(self.series("plt.vlines([1, 2], 0, 1)")["kind"], "segments")
        self.assertEqual(self.series("plt.errorbar([1, 2], [3, 4], yerr=.1, capsize=2, label='e')"),
                         {"kind": "line", "label": "e", "points": 2, "x": [1, 2], "y": [3, 4], "error_bars": "y"})
        self.assertEqual(self.axes("plt.axes(projection='polar').plot([1, 2], [3, 4])")["projection"], "polar")
        self.assertEqual(self.series("plt.axes(projection='3d').scatter([1, 2], [3, 4], [5, 6])")["z"], [5, 6])

    def test_boxes(self):
        wanted = [{"at": "m", "low": 1, "q1": 2, "median": 3, "q3": 4, "high": 4, "outliers": 1},
                  {"at": "n", "low": 2, "q1": 2.5, "median": 3, "q3": 3.5, "high": 4, "outliers": 0}]
        for options in ("", ", patch_artist=True"):
            boxes = self.series(f"plt.boxplot([[1, 2, 3, 4, 20], [2, 3, 4]], labels=['m', 'n']{options})")
            self.assertEqual((boxes["kind"], boxes["boxes"]), ("box", wanted))
        boxes = self.series("plt.boxplot([[1, 2, 3, 4, 20], [2, 3, 4]], labels=['m', 'n'], vert=False)")
        self.assertEqual((boxes["horizontal"], boxes["boxes"]), (True, wanted))

    def test_times(self):
        self.run_ok("import pandas as pd, datetime\nd = pd.date_range('2020-01-01', periods=3)")
        days = ["2020-01-01", "2020-01-02", "2020-01-03"]
        for draw in ("plt.plot(d, [1, 2, 3])", "plt.scatter(d, [1, 2, 3])", "plt.bar(d, [1, 2, 3], width=.5)",
                     "plt.plot(list(d), [1, 2, 3])", "pd.Series([1, 2, 3], index=d).plot()"):
            self.assertEqual(self.series(draw)["x"], days, draw)
        self.assertEqual(self.axes("plt.plot(d, [1, 2, 3]); plt.xlim(d[0], d[2])")["xlim"], [days[0], days[2]])

    def test_pandas_and_colours(self):
        axes = self.axes("import pandas as pd\n"
                         "pd.DataFrame({'a': [1, 2], 'b': [3, 4]}, index=['u', 'v']).plot.bar(stacked=True)")
        self.assertEqual([(s["label"], s["x"], s["y"], s.get("base")) for s in axes["series"]],
                         [("a", ["u", "v"], [1, 2], None), ("b", ["u", "v"], [3, 4], [1, 2])])
        axes = self.chart("plt.scatter([1, 2], [3, 4], c=[1, 9]); plt.colorbar(label='heat')")["axes"]
        self.assertEqual(axes[1], {"colorbar": True, "label": "heat", "limits": [1, 9]})

    @needs("seaborn")
    def test_seaborn(self):
        self.run_ok("import seaborn as sns, pandas as pd\ndf = pd.DataFrame({'k': list('aabb'), 'v': [1, 3, 5, 9]})")
        axes = self.axes("sns.barplot(data=df, x='k', y='v', errorbar=None)")
        self.assertEqual([(s["kind"], s["x"], s["y"]) for s in axes["series"]], [("bar", ["a", "b"], [2, 7])])
        self.assertEqual(self.series("sns.histplot([1, 1, 2, 4], bins=3)")["kind"], "hist")
        self.assertEqual(self.series("sns.boxplot(data=df, x='k', y='v')")["boxes"][0]["median"], 2)
        axes = self.chart("sns.heatmap([[1, 2], [3, 4]], annot=True)")["axes"]
        self.assertEqual(axes[0]["series"][0]["values"], [[1, 2], [3, 4]])
        self.assertIn("series", self.chart("sns.violinplot(data=df, x='k', y='v')")["axes"][0])

    @needs("networkx")
    def test_networkx(self):
        axes = self.axes("import networkx as nx\nnx.draw(nx.path_graph(4), with_labels=True)")
        self.assertEqual([(s["kind"], s["points"]) for s in axes["series"]], [("scatter", 4), ("segments", 6)])
        self.assertEqual([t["text"] for t in axes["texts"]], list("0123"))


@needs("matplotlib")
class Bounds(Case):
    def test_many_points(self):
        series = self.series("plt.plot(np.arange(1_000_000) * 2)")
        self.assertEqual((series["points"], len(series["x"]), series["x"][0], series["y"][-1]),
                         (1_000_000, 200, 0, 1_999_998))

    def test_many_series(self):
        axes = self.axes("for i in range(150): plt.plot(np.random.rand(1000), label='x' * 300)")
        self.assertEqual(len(axes["series"]) + axes["series_left_out"], 150)
        self.assertGreater(len(axes["series"]), 20)
        axes = self.axes("ax = plt.gca(); from matplotlib.patches import Circle\n"
                         "for i in range(400): ax.add_patch(Circle((i, i), 1))")
        self.assertEqual(len(axes["series"]) + axes["series_left_out"], 400)
        axes = self.axes("for i in range(120): plt.bar([i], [i])")
        self.assertEqual((len(axes["series"]), axes["series_left_out"]), (100, 20))

    def test_many_axes(self):
        chart = self.chart("f, a = plt.subplots(6, 6)\nfor x in a.flat: x.plot(np.random.rand(500), label='é' * 500)")
        self.assertEqual(len(chart["axes"]) + chart["axes_left_out"], 36)

    def test_odd_numbers(self):
        axes = self.axes("plt.plot([1, float('nan'), float('inf')]); plt.plot(np.ma.masked_equal([1, 2, 3], 2))\n"
                         "plt.plot([1/3])")
        self.assertEqual([s["y"] for s in axes["series"]], [[1, None, "inf"], [1, None, 3], [0.333333]])

    def test_what_fails_leaves_the_picture(self):
        cell = self.run_ok("from matplotlib.lines import Line2D\n"
                           "class Odd(Line2D):\n    def get_visible(self): return True\n"
                           "    def get_linestyle(self): raise ValueError('no')\n"
                           "f, ax = plt.subplots(); ax.plot([1, 2]); ax.add_line(Odd([1], [2]));")
        self.assertEqual(cell.stderr, "")
        (axes,) = json.loads(cell.displays[0][CHART])["axes"]
        self.assertEqual((len(axes["series"]), axes["series_left_out"]), (1, 1))
        cell = self.run_ok("f, ax = plt.subplots(); ax.plot([1, 2]); ax.get_title = None\nNone")
        self.assertIn("image/png", cell.displays[0])
        self.assertNotIn(CHART, cell.displays[0])
        self.assertEqual(cell.stderr, "")

    def test_other_formats_and_none(self):
        self.assertEqual(self.run_ok("plt.figure();").kinds, [])
        self.assertNotIn(CHART, self.run_ok("plt.figure()").result)
        self.run_ok("%config InlineBackend.figure_format = 'svg'")
        cell = self.run_ok("plt.plot([1]);")
        self.assertEqual(set(cell.displays[0]), {"image/svg+xml", "text/plain", CHART})

    def test_size_of_the_picture(self):
        cell = self.run_ok("plt.plot([1]);")
        width, height = png(cell.displays[0]["image/png"])
        self.assertEqual(json.loads(cell.outputs[0][2]), {"image/png": {"width": width, "height": height}})

    def test_giant(self):
        """20,000 x 20,000 pixels would be 1.6 GB."""
        cell = self.run_ok("import resource\nresource.setrlimit(resource.RLIMIT_AS, (1500 << 20,) * 2)\n"
                           "plt.figure(figsize=(200, 200), dpi=100); plt.plot([1, 2]);")
        width, height = png(cell.displays[0]["image/png"])
        self.assertTrue(2000 < max(width, height) < 5000, (width, height))
        note = json.loads(cell.outputs[0][2])["image/png"]
        self.assertEqual(note, {"width": width, "height": height, "dpi": 20.48, "full_dpi": 100})
        self.assertIn(b"<Figure size 20000x20000 with 1 Axes, shown as 4096x4096>", cell.displays[0]["text/plain"])
        self.run_ok("plt.figure(figsize=(200, 2)).savefig('user.png', dpi=50); plt.close()")
        with open(f"{self.session.directory}/user.png", "rb") as file:
            self.assertEqual(png(file.read()), (10000, 100))

    def test_far_outside(self):
        cell = self.run_ok("plt.plot([1, 2]); plt.text(90, 1, 'far');")
        self.assertLess(max(png(cell.displays[0]["image/png"])), 9000)
        cell = self.run_ok("plt.plot([1, 2]); plt.text(1e5, 1e5, 'farther');")
        self.assertLess(max(png(cell.displays[0]["image/png"])), 9000)

    def test_takes_little_time(self):
        """Less than the drawing by far; a noisy machine is forgiven."""
        cell = self.run_ok("import time, io\nfrom IPython.core.getipython import get_ipython\n"
                           "bundles = get_ipython().display_formatter.mimebundle_formatter\nratios = []\n"
                           "for _ in range(5):\n"
                           "    f, ax = plt.subplots(); ax.plot(range(300)); ax.bar(range(20), range(20)); ax.legend(['a'])\n"
                           "    a = time.perf_counter(); bundles(f)\n"
                           "    b = time.perf_counter(); f.savefig(io.BytesIO(), bbox_inches='tight')\n"
                           "    ratios.append((b - a) / (time.perf_counter() - b)); plt.close()\n"
                           "min(ratios)")
        self.assertLess(float(cell.plain), 0.1)
