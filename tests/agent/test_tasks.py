"""The analyst's tasks (tests/tasks), asked: the model's first program has a mistake in it, from whose traceback it
writes the right one. What comes out is looked at as there."""
import ast
import importlib
import inspect
import itertools
import json
import os
import sys

import asking
import cli
from asking import KEY, PROTOCOLS
from model_server import ModelServer

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tasks"))

protocols = itertools.cycle(PROTOCOLS)


def with_mistake(program):
    """The program with its last use of a name of its own misspelt, and that name: so that most of it has run."""
    nodes = [n for n in ast.walk(ast.parse(program)) if isinstance(n, ast.Name)]
    own = {n.id for n in nodes if isinstance(n.ctx, ast.Store)}
    used = [n for n in nodes if isinstance(n.ctx, ast.Load)]
    last = max(used, key=lambda n: (n.id in own, n.lineno, n.col_offset))
    wrong = last.id + "_of_all"
    lines = program.splitlines(keepends=True)
    line = lines[last.lineno - 1].encode()
    lines[last.lineno - 1] = (line[:last.col_offset] + wrong.encode() + line[last.end_col_offset:]).decode()
    return "".join(lines), wrong


def last_cell(events):
    """With what was told as it came, and is not told again with the cell."""
    begun = max(n for n, e in enumerate(events) if e["event"] == "running")
    displays = [e["data"] for e in events[begun:] if e["event"] in ("display", "result")]
    [cell] = [e["data"] for e in events[begun:] if e["event"] == "cell"]
    whole = iter(displays)
    cell["outputs"] = [next(whole) if o["type"] in ("display", "result") else o for o in cell["outputs"]]
    return cell


class Asked:
    """Before a case of tasks: what it would run, it asks."""

    def do(self, code, *files):
        mistaken, wrong = with_mistake(code)
        protocol = next(protocols)
        script = [{"text": "Let me see.", "calls": [mistaken]},
                  {"text": "A slip.", "expect": f"NameError: name '{wrong}' is not defined", "calls": [code]},
                  {"text": "Done."}]
        with open(self.path("key"), "w") as f:
            f.write(KEY)
        os.chmod(self.path("key"), 0o600)
        uploads = [part for path in files for part in ("-f", path)]
        with ModelServer(script, protocol=protocol, key=KEY) as model:
            done = cli.run("ask", "--json", "--timeout", str(cli.PATIENCE), "--server", self.server.link, *uploads, "-o",
                           self.path("out"), *asking.arguments(model, protocol), "--key-file", self.path("key"),
                           "Do this.", env={"HOME": self.path(), "XDG_STATE_HOME": None, "OPENAI_API_KEY": None})
            self.assertEqual(model.faults, [], done)
        self.assertStatus(done, 0)
        events = [json.loads(line) for line in done.out.splitlines()]
        cells = [e["data"] for e in events if e["event"] == "cell"]
        self.assertEqual([(c["status"], c.get("undone", False)) for c in cells], [("error", True), ("ok", False)])
        cell = last_cell(events)
        self.assertEqual(cli.text(cell, "stderr"), "")
        self.tell(cell)
        return cell


def asked(case):
    """The same case, with those of its tests that `do` something."""
    runs = {name: f for name, f in vars(case).items() if name.startswith("test") and ".do(" in inspect.getsource(f)}
    others = {name: f for name, f in vars(case).items() if not name.startswith(("test", "__"))}
    return type(case.__name__, (Asked, *case.__bases__), {**others, **runs, "__module__": __name__})


def take_all():
    for module in ("test_core_models", "test_core_pictures", "test_core_tables"):
        for name, case in inspect.getmembers(importlib.import_module(module), inspect.isclass):
            if case.__module__ == module:
                globals()[name] = asked(case)


take_all()
