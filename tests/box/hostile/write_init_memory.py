# tries: open init's memory and its settings for writing
# why: a word written there is code in the process that guards the box
def write(path):
    os.close(os.open(path, os.O_WRONLY))
for name in ("mem", "oom_score_adj", "clear_refs", "coredump_filter", "comm"):
    attempt(f"/proc/1/{name}", write, f"/proc/1/{name}")
