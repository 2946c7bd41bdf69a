# tries: asyncio.run from a program that is not a notebook's
# why: the commonest line of all; IPython's own loop must not be running under a plain cell
# shell: ipython
import asyncio
async def main():
    await asyncio.sleep(0.01)
    return 42
assert asyncio.run(main()) == 42
print("OK")
