# tries: asyncio: gather, queues, subprocesses, streams over loopback, to_thread, top-level await
# shell: ipython
# %% a
import asyncio
async def slow(n):
    await asyncio.sleep(0.01)
    return n
assert sum(await asyncio.gather(*(slow(n) for n in range(100)))) == 4950
# %% a
process = await asyncio.create_subprocess_exec("echo", "hello", stdout=asyncio.subprocess.PIPE)
assert (await process.communicate())[0] == b"hello\n"
assert await asyncio.to_thread(lambda: 42) == 42
# %% a
async def echo(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()
server = await asyncio.start_server(echo, "127.0.0.1", 0)
port = server.sockets[0].getsockname()[1]
reader, writer = await asyncio.open_connection("127.0.0.1", port)
writer.write(b"over loopback\n")
assert await reader.readline() == b"over loopback\n"
writer.close()
server.close()
# %% a
try:
    await asyncio.wait_for(asyncio.sleep(10), 0.05)
except asyncio.TimeoutError:
    print("OK")
