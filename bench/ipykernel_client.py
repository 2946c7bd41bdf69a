"""An ipykernel through jupyter_client's blocking client, as a program that embeds one would use it.

Answers requests, a JSON object a line: {"cells": 50} starts a kernel, imports the modules, and
answers the time to the first result, the times of 50 cells `1+1` in the live kernel, and the memory
that is the idle kernel's alone. The kernel is gone before the answer is written.
"""

import json
import sys
import time

from jupyter_client.manager import KernelManager

from procs import private_bytes

IMPORTS = "import numpy, pandas, matplotlib.pyplot\n"


def run(client, code):
    """Until the reply is here and the kernel says that it is idle; the result's text."""
    request = client.execute(code)
    text = None
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "execute_result":
            text = message["content"]["data"]["text/plain"]
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            break
    while client.get_shell_msg(timeout=60)["parent_header"].get("msg_id") != request:
        pass
    if text != "2":
        sys.exit(f"ipykernel_client: the kernel answered {text!r}")


def one_kernel(cells):
    begun = time.monotonic_ns()
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    run(client, IMPORTS + "1+1")
    start_ns = time.monotonic_ns() - begun
    times = []
    for _ in range(cells):
        begun = time.monotonic_ns()
        run(client, "1+1")
        times.append(time.monotonic_ns() - begun)
    time.sleep(0.2)
    memory = private_bytes(manager.provisioner.process.pid)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return {"start_ns": start_ns, "cell_ns": times, "private_bytes": memory}


def main():
    print(json.dumps({"warm": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(one_kernel(json.loads(line)["cells"])), flush=True)


if __name__ == "__main__":
    main()
