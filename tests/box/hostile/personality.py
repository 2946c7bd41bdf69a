# tries: switch off address randomisation, make everything executable, pretend to be 32-bit
# why: it makes the next exploit easy
for name, value in (("ADDR_NO_RANDOMIZE", 0x40000), ("READ_IMPLIES_EXEC", 0x400000), ("PER_LINUX32", 8)):
    text, _ = child(lambda: syscall(135, value))
    (refused if text.startswith("(-1") else escaped)(name, text)
