# tries: make a user namespace of its own
# why: a new user namespace gives all capabilities inside, and with them a hundred kernel doors
def act():
    result, error = syscall(272, 0x10000000)
    return "made" if result == 0 else errno.errorcode[error]
text, _ = child(act)
(escaped if text == "made" else refused)("unshare(CLONE_NEWUSER)", text)
