"""matplotlib's figures: shown by plt.show(), or at the end of the cell that left them open.

matplotlib may be imported beforehand, later by the user, or never; nothing here imports it. The
backend is set by hand and not by MPLBACKEND, because programs started from a cell inherit the
environment and have no such module; for them the variable says Agg.
"""
from .pristine import __builtins__

import os
import sys
from importlib.machinery import PathFinder
from io import BytesIO

from IPython.core.pylabtools import select_figure_formats
from traitlets import Bool, Dict, List, Unicode, observe
from traitlets.config import Configurable

from . import mpl_backend
from .frames import SHOWN


def install(shell):
    """Make figures work in this shell, whenever matplotlib comes."""
    os.environ["MPLBACKEND"] = "Agg"
    select_formats(shell, {"png"})
    shell.configurables.append(InlineBackend(parent=shell))
    if "matplotlib" in sys.modules:
        use_backend()
    else:
        sys.meta_path.insert(0, Watch())


def use_backend():
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


class Watch:
    """A finder that sees `import matplotlib`, once, and sets the backend when it is done."""

    def find_spec(self, name, path=None, target=None):
        if name != "matplotlib":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                use_backend()

            spec.loader.exec_module = exec_module
        return spec


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


def to_png(figure):
    if not figure.axes and not figure.lines:
        return None
    canvas = figure.canvas
    if not hasattr(canvas, "print_png"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        canvas = FigureCanvasAgg(figure)
    output = BytesIO()
    canvas.print_figure(output, format="png", dpi=figure.dpi, facecolor=figure.get_facecolor(),
                        edgecolor=figure.get_edgecolor(), bbox_inches="tight")
    _note_shown(figure)
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
    if not figure.axes and not figure.lines:
        return
    _note_shown(figure)
    bundle, metadata = shell.represent(figure, strict=True)
    shell.show(SHOWN, bundle, metadata)
