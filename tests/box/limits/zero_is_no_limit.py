# tries: nothing; the flags are tried by tests/cli. Here: "none" lifts a limit
# args: --timeout none --memory none --cpu none --disk 1g --pids none --output none
# prints: fine
print("x" * 3_000_000)
print("fine")
