# tries: hide from the out-of-memory killer
# why: then it kills a neighbour instead
def hide():
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write("-1")  # below every ordinary process of the host
text, _ = child(hide)
if text == "None":
    escaped("its own", text)
else:
    refused("its own", text, maybe=True)  # root without CAP_SYS_RESOURCE cannot either
attempt("init's", lambda: os.close(os.open("/proc/1/oom_score_adj", os.O_WRONLY)))
