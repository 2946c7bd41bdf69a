# The helper that run.py puts before every program, inside the box and outside it.
#
# A program tries something and says how it went, one line for each act:
#
#     REFUSED: what (why)    the act failed
#     ESCAPED: what (got)    the act worked
#     WRONG: what            neither: the box broke something that honest programs need
#     UNTRIED: what          outside only: this host cannot do it either, so it proves nothing
#
# In the box every act must be REFUSED; outside, every act must be ESCAPED or, where the program
# said maybe=True, UNTRIED, and at least one ESCAPED. HOST (put before this text by run.py) tells
# what there is to find on the host: see host.py.
import ctypes
import errno
import os
import signal
import sys

OUTSIDE = os.environ.get("RETORT_OUTSIDE") == "1"
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def say(word, what, detail=""):
    print(f"{word}: {what}" + (f" ({str(detail)[:200]!s})" if detail != "" else ""), flush=True)


def refused(what, detail="", maybe=False):
    say("UNTRIED" if OUTSIDE and maybe else "REFUSED", what, detail)


def escaped(what, detail=""):
    say("ESCAPED", what, detail)


def wrong(what, detail=""):
    say("WRONG", what, detail)


def attempt(what, act, *args, maybe=False):
    """Do it: an OSError is a refusal, anything else an escape. Returns what came of it, or None."""
    try:
        got = act(*args)
    except OSError as e:
        return refused(what, errno.errorcode.get(e.errno, e), maybe)
    escaped(what, repr(got)[:100])
    return got


def found(what, evidence, maybe=False):
    """A leak: evidence is what was found, or something false."""
    if evidence:
        escaped(what, repr(evidence)[:160])
    else:
        refused(what, "nothing found", maybe)


def channel():
    """The pipe to retort. Outside: one that a naive reader holds."""
    import fcntl
    import stat
    if OUTSIDE:
        global _naive
        _naive = os.pipe()
        return _naive[1]
    for n in range(3, 1024):
        try:
            writes = fcntl.fcntl(n, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
            if writes and stat.S_ISFIFO(os.fstat(n).st_mode):
                os.set_blocking(n, True)
                return n
        except OSError:
            pass
    wrong("there is no channel")


def send(channel_fd, frame):
    sent = os.write(channel_fd, frame)
    if OUTSIDE:
        escaped("the forged frame", f"{sent} bytes went out")


def syscall(number, *args):
    """(result, errno) of a system call; bytes, buffers and structures are passed by address."""
    values = [a if isinstance(a, bytes) else
              ctypes.byref(a) if isinstance(a, (ctypes.Array, ctypes.Structure)) else
              ctypes.c_long(a) for a in args]
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(number), *values)
    return result, (ctypes.get_errno() if result == -1 else 0)


def reach(what, number, *args, maybe=False):
    """Call it with harmless arguments. EPERM or ENOSYS: refused. Any other answer, an argument
    error included, means that the kernel's code was reached."""
    result, error = syscall(number, *args)
    name = errno.errorcode.get(error, error)
    if result == -1 and error in (errno.EPERM, errno.ENOSYS):
        refused(what, name, maybe)
    else:
        escaped(what, name if result == -1 else result)


def child(act, *args, seconds=5):
    """Run it in a forked child. Returns (text it returned, signal that killed it or 0)."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            os.write(writing, str(act(*args)).encode())
            status = 0
        except BaseException as e:
            os.write(writing, f"raised {e!r}".encode())
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    status = os.waitpid(pid, 0)[1]
    return text, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
# ---- the program ----
