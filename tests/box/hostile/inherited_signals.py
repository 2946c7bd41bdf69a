# tries: inherit ignored and blocked signals from whoever started retort (nohup, a shell script)
# why: with SIGINT blocked a time-out cannot interrupt; with SIGTERM blocked children cannot be ended
# setup: signals
bits = {l.split()[0]: int(l.split()[1], 16) for l in open("/proc/self/status") if l.startswith(("SigBlk", "SigIgn"))}
def has(field, number):
    return bool(bits[field + ":"] >> (number - 1) & 1)
for number in (signal.SIGTERM, signal.SIGUSR2, signal.SIGINT):
    found(f"{number.name} blocked", has("SigBlk", number))
for number in (signal.SIGHUP, signal.SIGUSR1):
    found(f"{number.name} ignored", has("SigIgn", number))
