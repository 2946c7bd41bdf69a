"""Keeping what a session is: after a cell that changed something, a fork of the interpreter waits, and takes
its place when it dies.

It is made while nobody waits for an answer: when the last one was sent a moment ago and no order has come;
or else before the next cell, which waits for it. What only looks at values leaves nothing to keep.
"""
from .pristine import __builtins__

import ast
from threading import enumerate as threads
from threading import main_thread

FIRST_REST = 30  # milliseconds that a new session may take to its first cell, and none waits yet
SHORT = 200  # characters of a cell that are worth a look
PLAIN = (ast.Module, ast.Expr, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.operator,
         ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
VALUES = (int, float, complex, bool, str, bytes, type(None))


def leaves_no_trace(source, names):
    """Is this cell only arithmetic on numbers and texts? (Then what is lost with it is its line in Out.)"""
    if len(source) > SHORT:
        return False
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if type(names.get(node.id)) not in VALUES:
                return False
        elif not isinstance(node, PLAIN):
            return False
    return True


def lost_threads():
    """What a fork does not take along, a line each."""
    main = main_thread()
    return "\n".join(f"thread {thread.name}" for thread in threads() if thread is not main)


class Points:
    def __init__(self, kernel, keep):
        self.kernel = kernel
        self.keep = keep  # of the extension: True, False, or in the one that was woken what it lost
        self.due = None  # the cell whose state nobody keeps yet
        self.lost = ""  # to be told with the next cell

    def take(self):
        """True in the one that was woken."""
        due, self.due = self.due, None
        lost = self.keep(due or 0, lost_threads())
        if not isinstance(lost, str):
            return False
        self.lost = lost
        self.kernel.begin_again()
        return True

    def take_first(self, rehearse):
        """Of a session that has not begun."""
        if self.kernel.channel.rests(FIRST_REST):
            if self.take():
                return
            rehearse()

    def warning(self):
        """What is to be said once of a session that was restored."""
        lost, self.lost = self.lost, ""
        return f"retort: lost when the session was restored: {', '.join(lost.splitlines())}\n" if lost else ""
