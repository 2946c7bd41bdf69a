# tries: be told by signal when another session reads a shared directory
# why: F_NOTIFY is the forgotten older brother of inotify
# %% a
import fcntl, signal
told = []
signal.signal(signal.SIGIO, lambda *_: told.append(1))
directory = os.open("/usr/share/base-files" if OUTSIDE else "/usr/share/common-licenses", os.O_RDONLY)
try:
    fcntl.fcntl(directory, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
except OSError as e:
    refused("F_NOTIFY", e)
# %% b
for _ in range(3):
    with open("/usr/share/base-files/motd" if OUTSIDE else "/usr/share/common-licenses/GPL-3") as f:
        f.read()
# %% a
import time
time.sleep(0.3)
found("the other's reading, by F_NOTIFY", told)
signal.signal(signal.SIGIO, signal.SIG_IGN)
