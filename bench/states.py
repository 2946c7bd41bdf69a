"""What it costs to keep the states of a session, to go back, and to split, as a client of the server sees it."""

import json
import re
import socket
import statistics
import time

import report

FRAME = """
import os, time
import numpy as np, pandas as pd
frame = pd.DataFrame(np.random.rand(100_000_000 // 80, 10))
def plain_fork():
    back, forth = os.pipe()
    began = time.perf_counter_ns()
    pid = os.fork()
    if pid == 0:
        os.write(forth, str(frame.iloc[0, 0]).encode())
        os._exit(0)
    os.read(back, 100)
    took = time.perf_counter_ns() - began
    os.waitpid(pid, 0)
    os.close(back), os.close(forth)
    return took
"""
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
AT_ONCE = 16
REST_S = 0.1  # until the last state is kept
GROWTH_MB = (1, 16, 64, 256, 1024, 4096)


class Connection:
    """To a server, kept open. Python's own client takes half a millisecond for a call, which would be measured too."""

    def __init__(self, server):
        host = server.url.split("//")[1]
        address, port = host.split(":")
        self.socket = socket.create_connection((address, int(port)), timeout=300)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = f"Host: {host}\r\nAuthorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"

    def call(self, method, path, **body):
        text = json.dumps(body) if body else ""
        request = f"{method} {path} HTTP/1.1\r\n{self.headers}Content-Length: {len(text)}\r\n\r\n{text}"
        self.socket.sendall(request.encode())
        status, answer = self.answer()
        if status >= 300:
            raise SystemExit(f"bench: {method} {path}: {status} {answer[:300]}")
        return json.loads(answer) if answer else None

    def answer(self):
        came = self.receive()
        while b"\r\n\r\n" not in came:
            came += self.receive()
        head, _, body = came.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        status = int(head.split(None, 2)[1])
        if not length and status != 204:
            raise SystemExit(f"bench: an answer of unknown length: {head[:300]}")
        while length and len(body) < int(length[1]):
            body += self.receive()
        return status, body

    def receive(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise SystemExit("bench: the server has closed the connection")
        return piece

    def session(self, **body):
        return "/v1/sessions/" + self.call("POST", "/v1/sessions", **body)["id"]

    def cell(self, path, code):
        cell = self.call("POST", path + "/cells", code=code)
        if cell["status"] != "ok":
            raise SystemExit(f"bench: {code}: {json.dumps(cell)[:500]}")
        return cell

    def result(self, path, code):
        return next(o for o in self.cell(path, code)["outputs"] if o["type"] == "result")["data"]["text/plain"]


def timed(act, *args, **more):
    began = time.perf_counter_ns()
    answer = act(*args, **more)
    return time.perf_counter_ns() - began, answer


def cells(connection, n, rounds):
    """One that leaves no trace and one that does, where states are kept and where not, taking turns."""
    paths = {"on": connection.session(), "off": connection.session(checkpoints=0)}
    ns = {}
    for _ in range(rounds):
        for kept, path in paths.items():
            for name, code in (("cell", "1+1"), ("change", "x = 1")):
                took = [timed(connection.cell, path, code)[0] for _ in range(n)]
                ns.setdefault(f"{name}_{kept}", []).extend(took)
                time.sleep(REST_S)
    for path in paths.values():
        connection.call("DELETE", path)
    return ns


def back(connection, path):
    """Rollback of one change."""
    n = connection.cell(path, "z = 1")["n"]
    time.sleep(REST_S)
    connection.cell(path, "z = 2")
    time.sleep(REST_S)
    return timed(connection.call, "POST", path + "/rollback", to=n)[0]


def branch(server, path, code):
    """How long until a branch stands, and until it has answered its first cell."""
    body = json.dumps({"code": code})
    return server.client("branch", path, body=body, expect='"status":"ok"', rest=int(REST_S * 1000))["ns"]


def at_once(connection, path, code):
    began = time.perf_counter_ns()
    forks = connection.call("POST", path + "/fork", count=AT_ONCE)["sessions"]
    for fork in forks:
        connection.cell("/v1/sessions/" + fork["id"], code)
    took = time.perf_counter_ns() - began
    for fork in forks:
        connection.call("DELETE", "/v1/sessions/" + fork["id"])
    return took


def frame(server, connection, n):
    path = connection.session(limits={"memory": 2 << 30})
    connection.cell(path, FRAME)
    ns = {}
    for _ in range(n):
        time.sleep(REST_S)
        ns.setdefault("frame_fork", []).append(int(connection.result(path, "plain_fork()")))
        stands, took = branch(server, path, "frame.iloc[0, 0]")
        ns.setdefault("frame_stands", []).append(stands)
        ns.setdefault("frame_branch", []).append(took)
        ns.setdefault("frame_back", []).append(back(connection, path))
    ns["frame_at_once"] = [at_once(connection, path, "frame.iloc[0, 0]") for _ in range(3)]
    connection.call("DELETE", path)
    return ns


def growth(server, connection):
    rows = []
    for megabytes in GROWTH_MB:
        path = connection.session(limits={"memory": 16 << 30})
        connection.cell(path, f"heap = bytearray({megabytes} << 20)")
        row = {"mb": megabytes, "keep": [], "back": [], "branch": []}
        for _ in range(3):
            time.sleep(REST_S)
            connection.cell(path, "y = 1")
            row["keep"].append(timed(connection.cell, path, "y = 2")[0])  # it waits for the state before it
            row["back"].append(back(connection, path))
            row["branch"].append(branch(server, path, "heap[0]")[1])
        connection.call("DELETE", path)
        rows.append({k: v if k == "mb" else statistics.median(v) / 1e6 for k, v in row.items()})
    return rows


def measure(server, size):
    connection = Connection(server)
    ns = cells(connection, size["state_cells"], size["rounds"]) | frame(server, connection, size["states"])
    return {name: report.summary(of) for name, of in ns.items()} | {"growth": growth(server, connection)}
