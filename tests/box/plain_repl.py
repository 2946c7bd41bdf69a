#!/usr/bin/python3
"""The same protocol as `retort repl --json`, with no box at all: cells run in this very process.

The counterpart of every test that drives a session: what must be refused in a box works here.
Reads {"code": …} a line, answers with a line that has the shape of the contract's cell.
"""
import json
import os
import sys
import tempfile
import traceback

replies = os.fdopen(os.dup(1), "w")
cells = os.fdopen(os.dup(0), "r")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def shell():
    """IPython where the program asks for it, for magics and top-level await."""
    from IPython.core.interactiveshell import InteractiveShell
    made = InteractiveShell.instance()
    made.history_manager.enabled = False

    def run(code):
        result = made.run_cell(code)
        return result.error_before_exec or result.error_in_exec
    return run


def plain():
    names = {"__name__": "__main__"}

    def run(code):
        try:
            exec(compile(code, "<cell>", "exec"), names)
        except BaseException as e:
            traceback.print_exc()
            return e
    return run


run = shell() if "--ipython" in sys.argv else plain()
for n, line in enumerate(cells, 1):
    with tempfile.TemporaryFile() as kept:
        sys.stdout.flush()
        os.dup2(kept.fileno(), 1)
        error = run(json.loads(line)["code"])
        sys.stdout.flush()
        kept.seek(0)
        text = kept.read().decode(errors="replace")
    replies.write(json.dumps({
        "n": n, "status": "error" if error else "ok",
        "error": {"name": type(error).__name__, "value": str(error)} if error else None,
        "outputs": [{"type": "stdout", "text": text}] if text else []}) + "\n")
    replies.flush()
