# tries: print for ever until the time-out
# args: --timeout 2
# limit: wall
# status: limit
# check: at_ease
# prints: yes yes
# within: 25
while True:
    print("yes yes " * 100)
