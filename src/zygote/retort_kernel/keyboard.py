"""Nobody is at the keyboard: what asks for input fails at once and says why."""
import builtins
import getpass

MESSAGE = ("{} is not available: nobody is at the keyboard of this session; "
           "put the value into the code")


def no_input(prompt="", /):
    raise EOFError(MESSAGE.format("input()"))


def no_getpass(prompt="Password: ", stream=None, **_):
    raise EOFError(MESSAGE.format("getpass()"))


def remove():
    no_input.__name__ = no_input.__qualname__ = "input"
    builtins.input = no_input
    getpass.getpass = no_getpass
