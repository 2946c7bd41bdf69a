"""The matplotlib backend of a session: Agg, and show() sends pictures.

matplotlib imports its backend by name, perhaps long after this file has gone out of the box's
sight; so the module of that name is made here, from memory, once matplotlib is there.
"""
import sys
from types import ModuleType

from IPython.core.getipython import get_ipython

from . import figures

NAME = __name__ + "_inline"
BACKEND = "module://" + NAME


def register():
    """Needs matplotlib imported."""
    if NAME in sys.modules:
        return
    from matplotlib.backend_bases import FigureManagerBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    class FigureManager(FigureManagerBase):
        def show(self):
            figures.show_figure(get_ipython(), self.canvas.figure)

    class FigureCanvas(FigureCanvasAgg):
        manager_class = FigureManager

    module = ModuleType(NAME)
    module.FigureCanvas = FigureCanvas
    module.FigureManager = FigureManager
    module.show = show
    sys.modules[NAME] = module


def show(*args, **kwargs):
    figures.show_open(get_ipython())
