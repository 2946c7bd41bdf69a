# tries: print more than the output limit: head and tail are kept, the middle is counted
# args: --output 64k
# limit: output
# status: ok, limit
# exit: 0
# check: kept_head_and_tail
# prints: THE HEAD
# prints: THE TAIL
print("THE HEAD")
for i in range(200_000):
    print("line", i)
print("THE TAIL")
