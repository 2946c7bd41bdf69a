"""A matplotlib figure as data: what is drawn, on which axes, from which numbers (docs/OUTPUTS.md).

It is for a model that cannot look at the picture and for a client that wants to draw it again: kinds and
labels, and of each series a sample of its points. Everything is read from the artists that the figure has when
it is shown; nothing is drawn for it. Where a drawing has more than is understood here, the rest is left
out, and the picture has it.
"""
from .pristine import __builtins__

import json
import sys
import warnings
from math import isfinite

from . import tables

MIME = "application/vnd.retort.chart+json"
BYTES_MAX = 32 << 10
POINTS = 200  # of a series
POINTS_ALL = 1600  # of all series together: about what the bytes hold
POINTS_MIN = 5
SERIES_MAX = 100
AXES_MAX = 25
TEXTS_MAX = 50
TICKS_MAX = 200
ROOM = 200  # characters of a text
DIGITS = 6  # of a number
# What turns times into numbers: matplotlib's and pandas' own.
TIMES = ("DateConverter", "ConciseDateConverter", "_SwitchableDateConverter", "DatetimeConverter")


def describe(figure):
    """As JSON; None if there is nothing to tell, or it cannot be told."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the drawing has said it, or will
            return _within_bytes(_figure(figure))
    except Exception:
        return None  # of another version, or made by the user: the picture is there


def _figure(figure):
    width, height = figure.get_size_inches()
    found = {"size": [_number(width), _number(height)], "dpi": _number(figure.dpi)}
    _put(found, "title", _text_of(getattr(figure, "_suptitle", None)))
    axes = figure.axes
    room = max(POINTS_MIN, min(POINTS, POINTS_ALL // max(1, sum(map(_count, axes)))))
    found["axes"] = [_axes(each, room) for each in axes[:AXES_MAX]]
    _put(found, "axes_left_out", max(0, len(axes) - AXES_MAX))
    return found


def _count(axes):
    return len(axes.lines) + len(axes.containers) + len(axes.collections) + len(axes.images)


def _axes(axes, room):
    found = {}
    for side in ("left", "center", "right"):
        if axes.get_title(side):
            _put(found, "title", _cut(axes.get_title(side)))
    if axes.get_label() == "<colorbar>":
        return {"colorbar": True, "label": _cut(axes.get_ylabel() or axes.get_xlabel()),
                "limits": _numbers(axes.get_ylim())}
    if axes.name != "rectilinear":
        found["projection"] = axes.name
    sides = {}
    for side in ("x", "y", "z"):
        if not hasattr(axes, f"{side}axis"):
            continue
        axis = getattr(axes, f"{side}axis")
        sides[side] = scale = Scale(axis)
        _put(found, f"{side}label", _cut(axis.get_label_text()))
        found[f"{side}scale"] = axis.get_scale()
        found[f"{side}lim"] = [scale.time_or_number(value) for value in axis.get_view_interval()]
        _put(found, f"{side}ticks", [[_number(at), label] for at, label in list(scale.labels.items())[:TICKS_MAX]])
    legend = axes.get_legend()
    if legend is not None:
        found["legend"] = [_cut(text.get_text()) for text in legend.get_texts()[:TEXTS_MAX]]
        _put(found, "legend_title", _text_of(legend.get_title()))
    reader = Reader(axes, sides, room)
    found["series"] = reader.read()
    _put(found, "series_left_out", reader.left_out)
    _put(found, "texts", _texts(axes))
    return found


def _texts(axes):
    found = []
    for text in axes.texts[:TEXTS_MAX]:
        if text.get_text() and text.get_visible():
            x, y = text.xy if hasattr(text, "xy") else text.get_position()
            found.append({"x": _number(x), "y": _number(y), "text": _cut(text.get_text())})
    return found


# ---- positions ----

class Scale:
    """What numbers on an axis stand for: names of categories, times, or themselves."""

    def __init__(self, axis):
        self.labels = {}  # position: name
        try:
            self.labels = {float(at): _cut(label) for at, label in self._names(axis) if label}
        except Exception:
            pass
        converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
        self.is_time = _class_name(converter) in TIMES

    def _names(self, axis):
        """The user's own: of categories, or set by hand."""
        if _class_name(axis.units) == "UnitData":
            return [(at, name) for name, at in list(axis.units._mapping.items())[:TICKS_MAX]]
        formatter, locator = axis.get_major_formatter(), axis.get_major_locator()
        if _class_name(locator) != "FixedLocator" or _class_name(formatter) not in ("FuncFormatter",
                                                                                  "FixedFormatter"):
            return []
        places = [float(at) for at in locator.locs[:TICKS_MAX]]
        return zip(places, formatter.format_ticks(places))

    def tell(self, values):
        """By name only if all have one."""
        names = [self.labels.get(value) for value in values] if self.labels else [None]
        return names if all(names) else [self.time_or_number(value) for value in values]

    def time_or_number(self, value):
        if not self.is_time or value is None or not isfinite(value):
            return _number(value)
        time = sys.modules["matplotlib.dates"].num2date(value)
        text = time.replace(tzinfo=None).isoformat(timespec="milliseconds" if time.microsecond else "seconds")
        return _day(text)


def _day(value):
    """A time that is the beginning of a day is meant as the day."""
    return value.removesuffix("T00:00:00") if type(value) is str else value


# ---- series ----

class Reader:
    """The series of one pair of axes. What belongs together is read together, and then not again."""

    def __init__(self, axes, sides, room):
        self.axes = axes
        self.sides = sides
        self.room = room
        self.done = set()  # ids of artists
        self.left_out = 0
        self.found = []

    def read(self):
        axes = self.axes
        for container in axes.containers:
            self.take(self.container, container)
        self.take(self.boxes, axes.lines)
        for line in axes.lines:
            self.take(self.line, line)
        self.take(self.wedges, axes.patches)
        for patch in axes.patches:
            self.take(self.patch, patch)
        for collection in axes.collections:
            self.take(self.collection, collection)
        for image in axes.images:
            self.take(self.image, image)
        return self.found

    def take(self, read, what):
        if id(what) in self.done:
            return
        room = max(0, SERIES_MAX - len(self.found))
        if not room and read in (self.line, self.patch, self.collection, self.image):
            self.left_out += 1  # there may be a hundred thousand
            return
        try:
            series = read(what)
        except Exception:
            self.left_out += 1
            return
        self.found += series[:room]
        self.left_out += len(series[room:])

    # ---- bars ----

    def container(self, container):
        if not hasattr(container, "patches"):
            return self.line_with_more(container)
        self.done.update(map(id, container.patches))
        # One without a place is only there for the legend.
        bars = [patch for patch in container.patches
                if patch.get_visible() and isfinite(patch.get_x()) and isfinite(patch.get_y())]
        if not bars:
            return ()
        flat = container.orientation == "horizontal"
        starts, widths, bases, values = [], [], [], []
        for bar in _sample(bars, self.room):
            box = (bar.get_x(), bar.get_width(), bar.get_y(), bar.get_height())
            start, width, base, value = (box[2], box[3], box[0], box[1]) if flat else box
            starts.append(float(start)), widths.append(float(width))
            bases.append(float(base)), values.append(float(value))
        across, along = ("y", "x") if flat else ("x", "y")
        series = self.series("bar", container, len(bars))
        if flat:
            series["horizontal"] = True
        if len(starts) == len(bars) > 1 and _touch(starts, widths) and not self.sides[across].labels:
            series["kind"] = "hist"
            series["edges"] = [self.sides[across].time_or_number(edge)
                               for edge in starts + [starts[-1] + widths[-1]]]
        else:
            middles = [start + width / 2 for start, width in zip(starts, widths)]
            series[across] = self.bars_at(across, middles, widths)
        series[along] = _numbers(values)
        if any(bases):
            series["base"] = _numbers(bases)
        return [series]

    def bars_at(self, side, middles, widths):
        """Bars that stand beside each other at a category are named by it."""
        scale = self.sides[side]
        names = [scale.labels.get(float(round(middle))) for middle in middles]
        if scale.labels and all(names) and max(map(abs, widths)) <= 1:
            return names
        return scale.tell(middles)

    # ---- lines ----

    def boxes(self, lines):
        """A box plot is lines to matplotlib: of each box two whiskers, two caps, the median."""
        ends = [_ends(line) for line in lines]
        for side in "xy":
            found = []
            for i in range(len(lines) - 4):
                box = None if None in ends[i:i + 5] else _box(ends[i:i + 5])
                if box is not None:
                    found.append(box)
                    self.take_box(lines, i, box)
            if found:
                # Filled boxes are paths.
                self.done.update(id(patch) for patch in self.axes.patches if _class_name(patch) == "PathPatch")
                for box, place in zip(found, self.sides[side].tell([box["at"] for box in found])):
                    box["at"] = place
                series = {"kind": "box", "points": len(found), "boxes": found[:self.room]}
                return [dict(series, horizontal=True) if side == "y" else series]
            ends = [line and [(y, x) for x, y in line] for line in ends]  # lying boxes
        return ()

    def take_box(self, lines, i, box):
        """With the lines around its five: the box itself, and the marks beyond its whiskers."""
        self.done.update(map(id, lines[i:i + 5]))
        if i and len(lines[i - 1].get_xdata()) == 5:
            self.done.add(id(lines[i - 1]))
        if i + 5 < len(lines) and _is_marks(lines[i + 5]):
            self.done.add(id(lines[i + 5]))
            box["outliers"] = len(lines[i + 5].get_xdata())

    def line_with_more(self, container):
        """Error bars and stems: the line first, or None, then what is drawn at its points."""
        self.done.update(map(id, _flat(container)))
        found = self.line(container[0]) if container[0] is not None else ()
        for series in found:
            series["label"] = _label(container) or series["label"]
            sides = [side for side in "xy" if getattr(container, f"has_{side}err", False)]
            _put(series, "error_bars", "".join(sides))
        return found

    def line(self, line):
        if not line.get_visible():
            return ()
        data = line.get_data_3d() if hasattr(line, "get_data_3d") else (
            line.get_xdata(orig=True), line.get_ydata(orig=True))
        count = max(map(len, data))
        if not count:
            return ()
        in_data = tuple(map(bool, line.get_transform().contains_branch_seperately(self.axes.transData)))
        if len(data) == 2 and in_data != (True, True):
            return self.rule(line, in_data)
        series = self.series("scatter" if _is_marks(line) else "line", line, count)
        for side, values in zip("xyz", data):
            series[side] = self.along(side, _sample(values, self.room))
        return [series]

    def rule(self, line, in_data):
        """axhline() and axvline(); what is drawn on the paper, and not on the axes, is none."""
        if in_data == (False, True):
            return [dict(self.series("hline", line), y=self.along("y", line.get_ydata()[:1])[0])]
        if in_data == (True, False):
            return [dict(self.series("vline", line), x=self.along("x", line.get_xdata()[:1])[0])]
        return ()

    def along(self, side, values):
        """Values as the user gave them, or as matplotlib has them."""
        values = [_item(value) for value in values]
        if all(value is None or type(value) in (int, float) for value in values):
            return self.sides[side].tell(values)
        return [_number(value) if type(value) in (int, float) else _day(tables.as_json(value, ROOM))
                for value in values]

    # ---- areas ----

    def wedges(self, patches):
        wedges = [patch for patch in patches if _class_name(patch) == "Wedge"]
        if not wedges:
            return ()
        self.done.update(map(id, wedges))
        return [{"kind": "pie", "points": len(wedges),
                 "labels": [_label(wedge) for wedge in wedges[:self.room]],
                 "fractions": [_number((wedge.theta2 - wedge.theta1) / 360) for wedge in wedges[:self.room]]}]

    def patch(self, patch):
        if not patch.get_visible():
            return ()
        corners = patch.get_transform().transform_path(patch.get_path()).vertices
        corners = self.axes.transData.inverted().transform(corners)
        series = self.series("shape", patch, len(corners))
        series["shape"] = _class_name(patch)
        self.put_points(series, corners)
        return [series]

    def collection(self, collection):
        if not collection.get_visible():
            return ()
        if _class_name(collection) == "QuadMesh":
            return [self.grid("heatmap", collection)]
        if "z" in self.sides and not hasattr(collection, "_offsets3d"):
            return [self.series("surface", collection)]
        if hasattr(collection, "_offsets3d"):
            series = self.series("scatter", collection, len(collection._offsets3d[0]))
            for side, values in zip("xyz", collection._offsets3d):
                series[side] = self.along(side, _sample(values, self.room))
            return [series]
        paths = collection.get_paths()
        if self.has_places(collection):
            offsets = collection.get_offsets()
            series = self.series("scatter", collection, len(offsets))
            self.put_points(series, offsets)
            if collection.get_array() is not None and collection.get_array().size == len(offsets):
                series["values"] = _numbers(_sample(collection.get_array(), self.room))
            return [series]
        is_open = _class_name(collection) == "LineCollection" or not len(collection.get_facecolor())
        kind = "segments" if is_open else "area"
        corners = [corner for path in _sample(paths, self.room) for corner in _sample(path.vertices, self.room)]
        series = self.series(kind, collection, sum(len(path.vertices) for path in paths))
        series["paths"] = len(paths)
        self.put_points(series, corners)
        return [series]

    def has_places(self, collection):
        """Is it the same shape at many places, which are data?"""
        if _class_name(collection) == "PolyCollection":  # hexagons are, areas are not
            return len(collection.get_paths()) == 1 < len(collection.get_offsets())
        return collection.get_offset_transform().contains_branch(self.axes.transData)

    def image(self, image):
        return [dict(self.grid("image", image), extent=_numbers(image.get_extent()))]

    def grid(self, kind, artist):
        """Cells of colours; their numbers where there are few."""
        array = artist.get_array()
        shape = array.shape
        if kind == "heatmap" and len(shape) == 1:
            rows = artist._coordinates.shape[0] - 1
            shape = rows, array.size // max(1, rows)
        series = self.series(kind, artist, shape[0] * shape[1])
        series["shape"] = list(shape)
        if len(shape) == 2:
            series["range"] = _numbers(artist.get_clim())
            if array.size <= self.room:
                series["values"] = [_numbers(row) for row in array.reshape(shape)]
        return series

    # ---- all ----

    def series(self, kind, artist, points=None):
        found = {"kind": kind, "label": _label(artist)}
        if points is not None:
            found["points"] = points
        return found

    def put_points(self, series, points):
        points = _sample(points, self.room)
        series["x"] = self.along("x", [point[0] for point in points])
        series["y"] = self.along("y", [point[1] for point in points])


# ---- shapes of lines ----

def _is_marks(line):
    return line.get_linestyle() in ("None", "", " ") and line.get_marker() not in ("None", "", " ", None)


def _ends(line):
    """The two points of a line that has two."""
    xs, ys = line.get_xdata(), line.get_ydata()
    if len(xs) != 2 or len(ys) != 2:
        return None
    return [(float(x), float(y)) for x, y in zip(xs, ys)]


def _box(five):
    """Of an upright one."""
    (x, q1), (x1, low) = five[0]
    (x2, q3), (x3, high) = five[1]
    caps_and_median = five[2:]
    middles = [(a[0] + b[0]) / 2 for a, b in caps_and_median]
    heights = [a[1] for a, b in caps_and_median if a[1] == b[1] and a[0] != b[0]]
    if not (x == x1 == x2 == x3 and len(heights) == 3 and heights[:2] == [low, high]
            and low <= q1 <= heights[2] <= q3 <= high and all(abs(middle - x) < 1e-6 for middle in middles)):
        return None
    return {"at": x, "low": _number(low), "q1": _number(q1), "median": _number(heights[2]),
            "q3": _number(q3), "high": _number(high)}


def _touch(starts, widths):
    """Each bar begins where the last one ends."""
    slack = 1e-6 * max(map(abs, widths))
    return all(abs(start + width - after) <= slack for start, width, after in zip(starts, widths, starts[1:]))


def _flat(container):
    for artist in container:
        yield from artist if isinstance(artist, (tuple, list)) else (artist,)


# ---- small things ----

def _sample(values, room):
    """At most so many, evenly, with the first and the last."""
    count = len(values)
    values = getattr(values, "iloc", values)
    if count <= room:
        return [values[i] for i in range(count)]
    return [values[i * (count - 1) // (room - 1)] for i in range(room)]


def _item(value):
    """Python's own number for one of numpy's; None for one that is masked."""
    if _class_name(value) == "MaskedConstant":
        return None
    return value.item() if hasattr(value, "dtype") and value.dtype.kind in "iufb" else value


def _number(value):
    value = _item(value)
    if value is None:
        return None
    value = float(value)
    if value.is_integer() and abs(value) < tables.EXACT:
        return int(value)
    return tables.as_json(float(f"{value:.{DIGITS}g}"))


def _numbers(values):
    return [_number(value) for value in values]


def _label(artist):
    label = artist.get_label()
    return _cut(str(label)) if label and not str(label).startswith("_") else None


def _cut(text):
    return tables.as_json(str(text), ROOM)


def _text_of(text):
    return None if text is None else _cut(text.get_text())


def _class_name(thing):
    return type(thing).__name__


def _put(found, name, value):
    """Only if there is something to say."""
    if value:
        found[name] = value


# ---- the bound ----

def _within_bytes(found):
    """Fewer points first, then fewer series."""
    room = POINTS
    while True:
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        if len(text.encode()) <= BYTES_MAX:
            return text
        if room > POINTS_MIN:
            room //= 2
            for axes in found["axes"]:
                axes["series"] = [_thin(series, max(room, POINTS_MIN)) for series in axes.get("series", ())]
        elif not _drop_half(found):
            return None


def _thin(series, room):
    if "x" not in series:
        return series
    return {name: _sample(value, room) if type(value) is list and len(value) > room else value
            for name, value in series.items()}


def _drop_half(found):
    """Of what takes most room. False if nothing is left."""
    all_axes = found["axes"]
    most = max(all_axes, key=lambda axes: len(json.dumps(axes)), default=None)
    for name in ("texts", "xticks", "yticks", "zticks", "legend", "series"):
        if most and len(most.get(name, ())) > 1 or (most and name == "series" and most.get(name)):
            count = len(most[name])
            most[name] = most[name][:count // 2]
            most[f"{name}_left_out"] = most.get(f"{name}_left_out", 0) + count - count // 2
            return True
    if most and len(all_axes) > 1:
        all_axes.remove(most)
        found["axes_left_out"] = found.get("axes_left_out", 0) + 1
        return True
    return False
