"""IPython's shell without a terminal: one cell in, displays out, its exception to the caller.

IPython's run_cell prints what goes wrong and goes on; a session needs to know. execute() does the
same work (transform, compile, run, display) but raises, and takes a third of the time. What is
nested in a cell (%run, %%time, get_ipython().run_cell) still goes through IPython's own.
"""
from .pristine import __builtins__

import __future__
import ast
import asyncio
import atexit
import builtins
import re
import sys
from inspect import CO_COROUTINE
from time import monotonic
from types import SimpleNamespace

from IPython.core.autocall import IPyAutocall
from IPython.core.macro import Macro
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import LSString, SList
from traitlets import Type

from . import (commands, display, figures, fonts, frames, libraries, mpl_backend, newer, renderers, tables,
               tracebacks)
from .imports import when_imported

FUTURES = 0
for _name in __future__.all_feature_names:
    FUTURES |= getattr(__future__, _name).compiler_flag

FIRST_WORD = re.compile(r"\s*([^\W\d]\w*)")
OUTPUTS_KEPT = 100  # values in Out: they are what a forgetful program leaks
INPUTS_GAP_MAX = 10000
# Read or written in every cell, and therefore in the table of the traits' values: the way through
# traitlets takes twenty times as long, and copies fifty pages of the zygote's memory.
TRAITS = ("ast_node_interactivity", "ast_transformers", "autoawait", "execution_count",
          "input_transformers_post")
UPDATES_AT_ONCE = 100  # of one display in a cell
UPDATE_SECONDS = 0.5  # between two of those that follow
CANCEL_GRACE = 1.0  # seconds that an awaited task has to clean up after an interrupt


class Leave(IPyAutocall):
    """exit and quit: end the cell with a status. The session's life is its owner's affair."""

    rewrite = False

    def __call__(self, code=None):
        raise SystemExit(code)

    def __repr__(self):
        return "exit() or sys.exit() ends the cell"


class Shell(InteractiveShell):
    displayhook_class = Type(display.Hook)
    display_pub_class = Type(display.Publisher)

    def __init__(self, channel, **options):
        self.channel = channel
        self.source = ""
        self.running = False
        self.noted = None  # an exception that a magic has shown and swallowed
        self.updates = {}  # of displays in this cell: how many, and when the last was sent
        self.late = {}  # the last of those that were not sent
        self.pictures = 0  # pixels of their longer side, in this cell; 0: as many as they have
        self.failures = None  # a list while formatters run: what they raised
        super().__init__(**options)
        atexit.unregister(self.atexit_operations)  # the process leaves by _exit
        self.outputs = self.user_ns["_oh"]
        self.displayhook.cache_size = OUTPUTS_KEPT
        self.set_hook("show_in_pager", display.show_page, 99)
        # What follows is read in every cell. Attributes of IPython's configurables are slow to
        # read, and touch many pages of memory.
        formatters = dict(self.display_formatter.formatters)
        self.plain = formatters.pop(display.PLAIN)
        self.plain_table = self.plain.type_printers
        self.printers = self.plain_table.copy()
        self.plain.float_format  # has its value in the table from now on
        self.plain_values = self.plain._trait_values
        others = (*formatters.values(), self.display_formatter.ipython_display_formatter,
                  self.display_formatter.mimebundle_formatter)
        self.tables = [formatter.type_printers for formatter in others]
        self.named = [formatter.deferred_printers for formatter in (self.plain, *others)]
        self.format_by_all = self.display_formatter.format
        self.display_formatter.format = self.format
        self.inputs = self.history_manager.input_hist_raw, self.history_manager.input_hist_parsed
        self.transformer = self.input_transformer_manager
        for name in TRAITS:
            getattr(self, name)  # has its value in the table from now on
        self.values = self._trait_values
        self.transformations = self._transformations()
        # Done by execute() itself.
        self.events.unregister("pre_execute", self._clear_warning_registry)
        self.line_magics = self.magics_manager.magics["line"]
        leave = Leave(self)
        for name in ("exit", "quit"):
            self.user_ns[name] = self.user_ns_hidden[name] = leave
            setattr(builtins, name, leave)
        # For good, and not around each cell: an interrupt in the middle of that would stick.
        self.builtin_trap.auto_builtins = {"get_ipython": self.get_ipython}
        self.builtin_trap.__enter__()
        self.display_trap.__enter__()
        self.register_magics(commands.Scripts)
        for name, command in self.alias_manager.aliases:
            if "--color" in command:  # in IPython's ls, also where there is no terminal
                self.alias_manager.define_alias(name, command.replace(" --color", ""))
        figures.install(self)
        tables.install(self)
        renderers.install(self)
        when_imported("numpy", display.know_numbers)
        fonts.install()
        newer.install()

    # ---- cells ----

    def execute(self, n, source):
        """Run a cell. What the user's code raises comes out of here."""
        self.source, self.noted, self.running = source, None, True
        error = None
        try:
            self.values["execution_count"] = n
            self.user_ns["__builtins__"] = builtins  # exec() would put ours there
            self.user_ns.pop("__warningregistry__", None)  # a new cell may warn anew
            sys.displayhook = self.displayhook
            self._announce("pre_execute")
            self._announce("pre_run_cell", n)
            self._run(self._compile(n, source))
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.running = False
            self._announce("post_execute")
            self._announce("post_run_cell", n, error)
            if self.updates:
                self.end_updates()
            error = None  # or the frame and its exception would keep each other alive
        if self.noted is not None:
            raise self.noted

    def _announce(self, event, n=None, error=None):
        """Call what has been registered for an IPython event. IPython's own trigger() would swallow
        an interrupt."""
        callbacks = self.events.callbacks[event]
        if not callbacks:
            return
        details = () if n is None else (self._details(event, n, error),)
        for callback in tuple(callbacks):
            try:
                callback(*details)
            except Exception as failure:
                sys.stderr.write(f"Error in callback {callback!r} (for {event}):\n")
                sys.stderr.write(tracebacks.render(failure))

    def _details(self, event, n, error):
        info = SimpleNamespace(raw_cell=self.source, store_history=True, silent=False,
                               shell_futures=True, cell_id=None)
        if event == "pre_run_cell":
            return info
        return SimpleNamespace(info=info, execution_count=n, error_in_exec=error,
                               error_before_exec=None, success=error is None,
                               result=self.outputs.get(n))

    def _compile(self, n, source):
        """Code objects: the statements, and the last expression, whose value is shown."""
        name = f"<cell {n}>"
        if source.isspace() or not source:
            self._remember(n, source, source)
            return []
        flags = self.compile.flags & FUTURES
        tree, cell = None, source
        if self._may_be_python(source):
            try:
                tree = compile(source, name, "exec", flags | ast.PyCF_ONLY_AST, True)
            except SyntaxError:
                pass
        try:
            if tree is None:
                cell = self.transform_cell(source)
        finally:
            self._remember(n, source, cell)
            tracebacks.keep_source(name, cell)
            self.compile._filename_map[name] = n
        if tree is None:
            tree = compile(cell, name, "exec", flags | ast.PyCF_ONLY_AST, True)
        if self.values["ast_transformers"]:
            tree = self.transform_ast(tree)
        if self.values["autoawait"]:
            flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        quiet, shown = self._split(tree.body)
        parts = []
        if quiet:
            parts.append(compile(ast.Module(quiet, []), name, "exec", flags, True))
        if shown:
            flags |= parts[0].co_flags & FUTURES if parts else 0
            parts.append(compile(ast.Interactive(shown), name, "single", flags, True))
        for part in parts:
            self.compile.flags |= part.co_flags & FUTURES
        return parts

    def _may_be_python(self, source):
        """If such a cell compiles, it is Python and IPython's transformations would not change it.
        They are most of the time of a short cell, and much of the memory it touches."""
        if source.startswith("In [") or self._transformations() != self.transformations:
            return False
        word = FIRST_WORD.match(source)
        if word is None or "\n" in source.strip():
            return True
        # On a single line the first word may be a magic without %, exit without (), or a macro.
        name = word.group(1)
        return name not in self.line_magics and not isinstance(
            self.user_ns.get(name), (IPyAutocall, Macro))

    def _transformations(self):
        """How many are registered: a user who adds some means them."""
        manager = self.transformer
        return (len(manager.cleanup_transforms), len(manager.line_transforms),
                len(manager.token_transformers), len(self.values["input_transformers_post"]))

    def _split(self, nodes):
        """What runs silently, and what shows its value."""
        mode = self.values["ast_node_interactivity"]
        if mode == "all":
            return [], nodes
        if mode == "last_expr_or_assign" and nodes and isinstance(nodes[-1], ast.Assign):
            target = nodes[-1].targets[0]
            if isinstance(target, ast.Name):
                value = ast.Expr(ast.Name(target.id, ast.Load()))
                nodes.append(ast.fix_missing_locations(ast.copy_location(value, nodes[-2])))
        if mode == "none" or not nodes:
            return nodes, []
        if mode == "last" or isinstance(nodes[-1], ast.Expr):
            return nodes[:-1], nodes[-1:]
        return nodes, []

    def _remember(self, n, raw, cell):
        """In, _i, _ii, _iii and _iN."""
        names = self.user_ns
        for inputs, text in zip(self.inputs, (raw, cell)):
            inputs.extend([""] * min(n - len(inputs), INPUTS_GAP_MAX))
            inputs.append(text.rstrip("\n"))
        names["_iii"], names["_ii"] = names.get("_ii", ""), names.get("_i", "")
        names["_i"] = self.last_input
        names[f"_i{n}"] = self.last_input = raw

    last_input = ""

    def _run(self, parts):
        for part in parts:
            if part.co_flags & CO_COROUTINE:
                return self._await(self._run_parts(parts))
        for part in parts:
            exec(part, self.user_global_ns, self.user_ns)

    async def _run_parts(self, parts):
        for part in parts:
            result = eval(part, self.user_global_ns, self.user_ns)
            if part.co_flags & CO_COROUTINE:
                await result

    event_loop = former_loop = None

    def _await(self, coroutine):
        """Run a coroutine on the session's event loop; an interrupt cancels it."""
        loop = self.event_loop
        if loop is None or loop.is_closed():
            loop = self.event_loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        task = loop.create_task(coroutine)
        try:
            loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                loop.run_until_complete(asyncio.wait({task}, timeout=CANCEL_GRACE))
            raise

    def forget_loop(self):
        """In a process that has waited: what an event loop works with was not carried over. If nothing was
        under way on the session's own, nothing is lost with it; its descriptors."""
        loop, self.event_loop = self.event_loop, None
        if loop is None:
            return ()
        if asyncio.all_tasks(loop):
            self.former_loop = loop  # it would complain of its tasks when it goes
            return ()
        numbers = loop._selector.fileno(), loop._ssock.fileno(), loop._csock.fileno()
        loop.close()
        return numbers

    # ---- values ----

    def represent(self, value, strict=False):
        """The mime bundle of a value and its metadata. A value that has no text because its
        __repr__ raised, raises; where another representation failed, stderr says so, or with
        `strict` it raises too."""
        if self.is_simple(type(value)):
            return {display.PLAIN: repr(value)}, None
        outer, self.failures = self.failures, []
        try:
            bundle, metadata = self.format(value)
            failures = self.failures
        finally:
            self.failures = outer
        if failures:
            if strict or display.PLAIN not in bundle:
                raise failures[0]
            sys.stderr.write(tracebacks.render(failures[0]))
        return bundle, metadata

    def has_only_text(self, kind):
        """Nobody has registered a formatter for it: by its class or, of numpy's, by one of its bases or by name."""
        names = display.NUMBERS.get(kind, ())
        if not names and kind not in display.BUILTIN:
            return False
        kinds = kind.__mro__ if names else (kind,)
        for table in self.tables:
            for each in kinds:
                if each in table:
                    return False
        for table in self.named:
            for name in names:
                if name in table:
                    return False
        return True

    def is_simple(self, kind):
        """Its text is its repr()."""
        kinds = (kind,)
        if kind not in display.SIMPLE:
            if kind in display.NUMBERS:
                kinds = kind.__mro__
            elif kind is not float:
                return False
            if self.plain_values["float_format"] != "%r":  # %precision
                return False
        for each in kinds:
            if self.plain_table.get(each) is not self.printers.get(each):
                return False
        return self.has_only_text(kind)

    def format(self, value, include=None, exclude=None):
        """In place of the formatter's own, which asks a dozen others also about a number: display() in a loop
        takes a quarter of the time."""
        kind = type(value)
        if include or exclude or not self.has_only_text(kind):
            return self.format_by_all(value, include, exclude)
        text = repr(value) if self.is_simple(kind) else self.plain(value)
        return ({} if text is None else {display.PLAIN: text}), {}

    def show(self, kind, bundle, metadata):
        frame = display.encode_bundle(kind, bundle, metadata, self.pictures)
        hold = kind == frames.RESULT and self.values["ast_node_interactivity"] == "last_expr"
        if not self.channel.show(frame, hold):
            sys.stdout.write(str(bundle.get(display.PLAIN, "")) + "\n")

    def update(self, name, bundle, metadata):
        """A display is to look otherwise. A progress bar asks for it all the time, and only its last state counts:
        after the first few one is sent now and then, and at the end of the cell the last."""
        count, last = self.updates.get(name, (0, 0))
        now = monotonic()
        if count >= UPDATES_AT_ONCE and now - last < UPDATE_SECONDS:
            self.late[name] = bundle, metadata
            return
        self.updates[name] = count + 1, now
        self.late.pop(name, None)
        self.show(frames.SHOWN, bundle, metadata)

    def end_updates(self):
        late, self.late, self.updates = self.late, {}, {}
        for bundle, metadata in late.values():
            self.show(frames.SHOWN, bundle, metadata)

    # ---- errors ----

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        """IPython and its magics call this where they swallow an exception. The cell failed all
        the same, so the first one is raised when the cell is over."""
        handled = sys.exc_info()[1]
        error = exc_tuple[1] if exc_tuple else handled or getattr(sys, "last_value", None)
        if error is None:
            sys.stderr.write("No traceback available to show.\n")
        elif self.failures is not None:
            self.failures.append(error)
        elif self.running and handled is not None and self.noted is None:
            self.noted = error
        else:
            sys.stderr.write(tracebacks.render(error))

    def showsyntaxerror(self, *args, **kwargs):
        self.showtraceback()

    def show_usage_error(self, error):
        self.showtraceback((type(error), error, None))

    # ---- commands ----

    def system(self, command):
        command = self.var_expand(command, depth=1)
        self.channel.mix()
        code = self.user_ns["_exit_code"] = commands.run_shell(command)
        libraries.explain_pip(command, code)

    system_raw = system_piped = system

    def getoutput(self, cmd, split=True, depth=0):
        output = commands.read_shell(self.var_expand(cmd, depth=depth + 1))
        return SList(output.splitlines()) if split else LSString(output)

    # ---- matplotlib ----

    def enable_matplotlib(self, gui=None):
        __import__("matplotlib.pyplot")
        figures.use_backend()
        return "inline", mpl_backend.BACKEND

    def enable_gui(self, gui=None):
        """There is no screen."""

    # ---- after the warm-up ----

    def forget(self, names, cells):
        """Become as new: `names` is what the namespace was before so many cells."""
        if self.event_loop is not None:
            self.event_loop.close()
            self.event_loop = None
            asyncio.set_event_loop(None)
        self.user_ns.clear()
        self.user_ns.update(names)
        self.outputs.clear()
        for inputs in self.inputs:
            inputs[:] = [""]
        hook = self.displayhook
        hook._ = hook.__ = hook.___ = ""
        self.last_input = self.source = ""
        self.noted = None
        for n in range(1, cells + 1):
            tracebacks.drop_source(f"<cell {n}>")
        self.compile._filename_map.clear()
        self.compile.reset_compiler_flags()
        self.execution_count = 1
