# tries: be the same user of the host as another session
# why: what is counted or allowed by uid (keys, pending signals, ptrace) would be shared
# check: uids_differ
# user: no (an ordinary user has one uid to give)
# outside: host
# %% a
print(open("/proc/self/uid_map").read())
if OUTSIDE:
    with open("/tmp/retort-test-uid", "w") as f:
        f.write(str(os.getuid()))
# %% b
if OUTSIDE:
    found("the same uid", open("/tmp/retort-test-uid").read() == str(os.getuid()) and "both")
    os.unlink("/tmp/retort-test-uid")
else:
    refused("the same uid", "the runner compares")
