"""What else draws, shows and counts: Pillow, plotly, altair, tqdm.

Each is made to give what an owner can use: plotly and altair their charts as data, with a text that says what is
drawn, instead of pages that load scripts from the network; Pillow a picture of bounded size; tqdm a line of
text now and then.
"""
from .pristine import __builtins__

import warnings
from io import BytesIO

from .frames import SHOWN
from .imports import when_imported

SIDE_MAX = 2000  # pixels of a picture's longer side
SAVED_AS_PNG = ("1", "L", "LA", "P", "RGB", "RGBA", "I")
TITLE_MAX = 200  # characters
TRACES_MAX = 20  # told in a text
PLOTLY_MIME = "application/vnd.plotly.v1+json"
# Those of plotly that would write a page, or open a browser.
PLOTLY_PAGES = ("plotly_mimetype", "jupyterlab", "nteract", "vscode", "notebook", "notebook_connected", "kaggle",
                "azure", "colab", "cocalc", "databricks", "browser", "firefox", "chrome", "chromium")
ALTAIR_PAGES = ("default", "html", "colab", "kaggle", "zeppelin", "mimetype", "jupyterlab", "nteract")
BAR_SECONDS = 1.0  # between two states of a progress bar


def install(shell):
    formatters = shell.display_formatter.formatters
    formatters["image/png"].for_type_by_name("PIL.Image", "Image", picture_to_png)
    formatters["image/jpeg"].for_type_by_name("PIL.Image", "Image", nothing)  # one picture is enough
    when_imported("PIL.ImageShow", show_pictures)
    when_imported("plotly.io._renderers", lambda module: use_plotly(shell, module))
    when_imported("altair", use_altair)
    when_imported("tqdm.std", calm_tqdm)
    when_imported("tqdm.notebook", write_tqdm)


def nothing(value):
    return None


# ---- Pillow ----

def picture_to_png(picture):
    full, note = picture.size, None
    if min(full) == 0:
        return None
    if picture.mode not in SAVED_AS_PNG:
        picture = picture.convert("L" if picture.mode == "F" else "RGB")
    if max(full) > SIDE_MAX:
        if picture.mode in ("1", "P"):
            picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
        scale = SIDE_MAX / max(full)
        picture = picture.resize([max(1, round(side * scale)) for side in full], reducing_gap=2.0)
        note = {"full_width": full[0], "full_height": full[1]}
    output = BytesIO()
    picture.save(output, "PNG")
    return output.getvalue(), note


def show_pictures(module):
    """Picture.show(), before the programs that would open a window."""
    module.register(module.IPythonViewer(), 0)


# ---- plotly ----

def use_plotly(shell, module):
    class Renderer(module.ExternalRenderer):
        """Not one that makes a mime bundle: for those plotly wants a package of notebooks."""

        def render(self, figure):
            from plotly.io import to_json
            bundle = {PLOTLY_MIME: to_json(figure, validate=False), "text/plain": tell_plotly(figure)}
            shell.show(SHOWN, bundle, None)

    renderer = Renderer()
    for name in PLOTLY_PAGES:
        if name in module.renderers:
            module.renderers[name] = renderer
    module.renderers["retort"] = renderer
    module.renderers.default = "retort"


def tell_plotly(figure):
    layout = figure.get("layout", {})
    traces = figure.get("data", ())
    told = [_tell_trace(trace) for trace in traces[:TRACES_MAX]]
    if len(traces) > TRACES_MAX:
        told.append(f"{len(traces) - TRACES_MAX} more")
    return _tell("plotly", _title(layout), told, [
        (side, _title(layout.get(f"{side}axis") or {})) for side in ("x", "y")])


def _tell_trace(trace):
    points = next((len(trace[name]) for name in ("x", "y", "values", "z", "lat", "locations")
                   if hasattr(trace.get(name), "__len__")), None)
    name = f" {_quoted(trace['name'])}" if trace.get("name") else ""
    return trace.get("type", "scatter") + name + (f" ({points} points)" if points is not None else "")


def _title(part):
    title = part.get("title") or ""
    return title.get("text") or "" if isinstance(title, dict) else title


# ---- altair ----

def use_altair(module):
    # Of what pandas will be one day, in every cell that draws; no user of altair can do anything about it.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"altair\.")
    registry = module.renderers
    with registry.enable("mimetype"):
        plain = registry.get()

    def render(spec, **options):
        found = plain(spec, **options)
        bundle = found[0] if isinstance(found, tuple) else found
        bundle["text/plain"] = tell_altair(spec)
        return found

    for name in ALTAIR_PAGES:
        registry.register(name, render)
    registry.enable("default")
    shown = next(base for base in module.Chart.__mro__ if "show" in vars(base))
    shown.show = lambda chart, *args, **options: chart.display()


def tell_altair(spec):
    title = _title(spec)
    layers = [layer for name in ("layer", "hconcat", "vconcat", "concat")
              for layer in spec.get(name, ())] or [spec.get("spec", spec)]
    told = [_tell_mark(layer) for layer in layers[:TRACES_MAX]]
    return _tell("altair", title, told, [])


def _tell_mark(layer):
    mark = layer.get("mark", "chart")
    mark = mark.get("type", "chart") if isinstance(mark, dict) else mark
    fields = [f"{channel}: {told.get('field') or told.get('aggregate')}"
              for channel, told in layer.get("encoding", {}).items()
              if isinstance(told, dict) and (told.get("field") or told.get("aggregate"))]
    return f"{mark} ({', '.join(fields)})" if fields else mark


def _tell(library, title, parts, axes):
    text = f"<{library} chart{': ' + _quoted(title) if title else ''}; {'; '.join(map(str, parts)) or 'empty'}"
    named = [f"{side}: {_quoted(name)}" for side, name in axes if name]
    return f"{text}; {', '.join(named)}>" if named else f"{text}>"


def _quoted(text):
    return repr(str(text)[:TITLE_MAX])


# ---- tqdm ----

def calm_tqdm(module):
    """A bar that nobody watches is written once in a while, and its thread, which would look after slow loops, would be
    one that a session cannot keep."""
    bar = module.tqdm
    bar.monitor_interval = 0
    begin = bar.__init__

    def __init__(self, iterable=None, *args, **options):
        if len(args) < 6:  # desc, total, leave, file, ncols, mininterval
            options.setdefault("mininterval", BAR_SECONDS)
        begin(self, iterable, *args, **options)

    __init__.__doc__, __init__.__wrapped__ = begin.__doc__, begin
    bar.__init__ = __init__


def write_tqdm(module):
    """There are no widgets here: in their place, a bar of text."""
    class tqdm_notebook(module.std_tqdm):
        def __init__(self, *args, display=True, **options):
            if not isinstance(options.get("ncols"), int):
                options.pop("ncols", None)
            super().__init__(*args, **options)

    tqdm_notebook.__module__, tqdm_notebook.__qualname__ = module.__name__, "tqdm_notebook"
    module.tqdm = module.tqdm_notebook = tqdm_notebook
