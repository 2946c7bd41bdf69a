"""matplotlib's figures: shown by plt.show(), or at the end of the cell that left them open.

matplotlib may be imported beforehand, later by the user, or never; nothing here imports it. The
backend is set by hand and not by MPLBACKEND, because programs started from a cell inherit the
environment and have no such module; for them the variable says Agg.
"""
from .pristine import __builtins__

import os
import sys
from io import BytesIO

from IPython.core.pylabtools import select_figure_formats
from traitlets import Bool, Dict, List, Unicode, observe
from traitlets.config import Configurable

from . import charts, mpl_backend
from .frames import SHOWN
from .imports import when_imported

SIDE_MAX = 4096  # pixels of a picture's longer side
DPI_MIN = 10  # below, nothing could be read


def install(shell):
    """Make figures work in this shell, whenever matplotlib comes."""
    os.environ["MPLBACKEND"] = "Agg"
    select_formats(shell, {"png"})
    shell.configurables.append(InlineBackend(parent=shell))
    shell.display_formatter.mimebundle_formatter.for_type_by_name("matplotlib.figure", "Figure", to_bundle)
    when_imported("matplotlib", use_backend)


def use_backend(_=None):
    mpl_backend.register()
    sys.modules["matplotlib"].rcParams["backend"] = mpl_backend.BACKEND
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.switch_backend(mpl_backend.BACKEND)


def leave_events():
    """pyplot, when it is imported into IPython, asks to be called after every cell. show_open() does
    what it would do, and plt.ion() makes it ask again."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.uninstall_repl_displayhook()


def prepare():
    """In the zygote. After each cell one looks whether figures are open: at the table itself, as the
    way to it leads over four pages of memory."""
    global _open
    if "matplotlib._pylab_helpers" in sys.modules:
        _open = sys.modules["matplotlib._pylab_helpers"].Gcf.figs
    leave_events()
    drop_fonts()


def drop_fonts():
    """matplotlib empties its cache of open fonts in every fork; emptied before, it costs nothing."""
    manager = sys.modules.get("matplotlib.font_manager")
    clear = getattr(getattr(manager, "_get_font", None), "cache_clear", None)
    if clear is not None:
        clear()


class InlineBackend(Configurable):
    """Takes `%config InlineBackend.figure_format = 'svg'` as notebooks do."""

    figure_formats = List(Unicode(), ["png"]).tag(config=True)
    figure_format = Unicode("png").tag(config=True)
    print_figure_kwargs = Dict({"bbox_inches": "tight"}).tag(config=True)
    close_figures = Bool(True).tag(config=True)
    rc = Dict({}).tag(config=True)

    @observe("figure_format")
    def _format_changed(self, change):
        select_formats(self.parent, {change["new"]}, **self.print_figure_kwargs)

    @observe("figure_formats")
    def _formats_changed(self, change):
        select_formats(self.parent, set(change["new"]), **self.print_figure_kwargs)


def select_formats(shell, formats, **options):
    if "matplotlib" in sys.modules and formats != {"png"}:
        select_figure_formats(shell, formats, **options)
    else:
        shell.display_formatter.formatters["image/png"].for_type_by_name(
            "matplotlib.figure", "Figure", to_png)


def is_empty(figure):
    return not figure.axes and not figure.lines


def to_bundle(figure):
    """What there is beside the picture."""
    if is_empty(figure):
        return {}
    chart = charts.describe(figure)
    bundle = {} if chart is None else {charts.MIME: chart}
    reduced = size_within(figure.get_size_inches(), figure.dpi)
    if reduced:
        bundle["text/plain"] = f"{repr(figure)[:-1]}, shown as {reduced[0]}x{reduced[1]}>"
    return bundle


def size_within(inches, dpi):
    """The pixels that a figure is drawn with if it would have too many; else None."""
    longest = max(inches) * dpi
    return [round(side * dpi * SIDE_MAX / longest) for side in inches] if longest > SIDE_MAX else None


class TooLarge(Exception):
    """args[0] is the longest side, in inches."""


def to_png(figure):
    """The picture, and a note if it is smaller than it would be: its pixels are memory of the session, four bytes
    each, and a figure of 200 x 200 inches is easily asked for."""
    if is_empty(figure):
        return None
    dpi, crop = figure.dpi, "tight"
    inches = figure.get_size_inches()
    if size_within(inches, dpi):
        dpi = SIDE_MAX / max(inches)
    try:
        data = draw(figure, dpi, crop)
    except TooLarge as error:
        # Something is drawn far outside.
        dpi = max(DPI_MIN, SIDE_MAX / error.args[0])
        crop = "tight" if dpi > DPI_MIN else None
        data = draw(figure, dpi, crop)
    _note_shown(figure)
    return data if dpi == figure.dpi else (data, {"dpi": round(dpi, 2), "full_dpi": round(figure.dpi, 2)})


def draw(figure, dpi, crop):
    canvas = figure.canvas
    if not hasattr(canvas, "print_png"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        canvas = FigureCanvasAgg(figure)
    measure = figure.get_tightbbox

    def get_tightbbox(*args, **options):
        box = measure(*args, **options)
        if max(box.size) * dpi > 2 * SIDE_MAX:
            raise TooLarge(max(box.size))
        return box

    output = BytesIO()
    figure.get_tightbbox = get_tightbbox
    try:
        canvas.print_figure(output, format="png", dpi=dpi, facecolor=figure.get_facecolor(),
                            edgecolor=figure.get_edgecolor(), bbox_inches=crop)
    finally:
        del figure.get_tightbbox
    return output.getvalue()


_open = None  # matplotlib's table of open figures, where it is imported beforehand
_shown = set()  # numbers of figures that this cell has shown as a value already


def _note_shown(figure):
    _shown.add(getattr(figure, "number", None))  # a number: it is pyplot's


def show_open(shell):
    """Show every open figure and close it."""
    if _open is not None and not _open:
        return
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None or not helpers.Gcf.figs:
        return
    managers = helpers.Gcf.get_all_fig_managers()
    try:
        for manager in managers:
            if manager.num not in _shown:
                show_figure(shell, manager.canvas.figure)
    finally:
        _shown.clear()
        helpers.Gcf.destroy_all()


def show_figure(shell, figure):
    if is_empty(figure):
        return
    _note_shown(figure)
    bundle, metadata = shell.represent(figure, strict=True)
    shell.show(SHOWN, bundle, metadata)
