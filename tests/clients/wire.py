"""Both transports as bytes, for what no official client sends."""
import contextlib
import http.client
import json
import os
import queue
import signal
import subprocess
import threading
import time

import api
import clients

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"
PARSE, REQUEST, METHOD, PARAMS, HEADER, VERSION = -32700, -32600, -32601, -32602, -32020, -32022


def meta(**more):
    """What each modern request has in its parameters."""
    return {"_meta": {META + "protocolVersion": MODERN, META + "clientInfo": {"name": "raw", "version": "1"},
                      META + "clientCapabilities": {}} | more}


def request(method, params=None, id=1, **members):
    """A message, modern unless the parameters say otherwise."""
    params = meta() | params if params is not None and "_meta" not in params else params if params is not None else meta()
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params} | members


def old(method, params=None, id=1):
    """A message of the era with a handshake."""
    message = {"jsonrpc": "2.0", "method": method}
    if id is not None:
        message["id"] = id
    return message if params is None else message | {"params": params}


def initialize(version=LEGACY, id=1):
    return old("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}, id)


def run_python(code, id=1, **arguments):
    return request("tools/call", {"name": "run_python", "arguments": {"code": code, **arguments}}, id)


def headers_of(message):
    """Those that a modern request needs."""
    if not isinstance(message, dict) or "_meta" not in (message.get("params") or {}):
        return {}
    found = {"MCP-Protocol-Version": MODERN, "Mcp-Method": str(message.get("method"))}
    named = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(message.get("method"))
    if named and isinstance(message["params"].get(named), str):
        found["Mcp-Name"] = message["params"][named]
    session = (message["params"].get("arguments") or {}).get("session") if isinstance(message["params"].get("arguments"), dict) else None
    if isinstance(session, str):
        found["Mcp-Param-Session"] = session
    return found


def events(body):
    """The messages of a stream."""
    return [json.loads(line[5:]) for line in body.decode().splitlines() if line.startswith("data:") and line[5:].strip()]


class Answer(api.Answer):
    @property
    def message(self):
        """The answer itself, whether it came alone or at the end of a stream."""
        if (self.headers.get("Content-Type") or "").startswith("text/event-stream"):
            return [e for e in events(self.body) if "method" not in e][-1]
        return json.loads(self.body)

    @property
    def error(self):
        return self.message["error"]["code"]


class Http:
    """POST /mcp and its like, a connection for each."""

    def __init__(self, server):
        self.server = server

    def send(self, body, headers=None, method="POST", path="/mcp", drop=()):
        """The connection, and its response not read yet."""
        own = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream", **headers_of(body), **(headers or {})}
        own = {k: v for k, v in own.items() if k not in drop}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.server.address, self.server.port, timeout=api.PATIENCE)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused while we were still sending
            connection.request(method, path, body, own)
        return connection, connection.getresponse()

    def post(self, body, headers=None, **more):
        connection, response = self.send(body, headers, **more)
        try:
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def handshake(self, version=LEGACY):
        """The headers of a protocol session."""
        answer = self.post(initialize(version))
        assert answer.status == 200, answer
        headers = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"], "MCP-Protocol-Version": answer.message["result"]["protocolVersion"]}
        assert self.post(old("notifications/initialized", id=None), headers).status == 202
        return headers


class Stdio:
    """retort mcp, with its pipes in our hands. What it writes is read by a thread, unless that is to be seen to."""

    def __init__(self, *args, read=True):
        self.process = subprocess.Popen(api.command(*clients.MCP, *args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**api.plain_environment(), "XDG_CONFIG_HOME": clients.CONFIG})
        self.lines = queue.Queue()
        self.others = []  # messages that nobody waited for
        self.log = []
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()
        if read:
            threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def write(self, message):
        """A message, or bytes as they are."""
        self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def next(self, seconds=api.PATIENCE):
        """The next message; None at the end. Every line is one, and nothing else is written."""
        line = self.lines.get(timeout=seconds)
        return None if line is None else json.loads(line)

    def answer(self, id, seconds=api.PATIENCE):
        """The answer with that id. What else comes is kept."""
        end = time.monotonic() + seconds
        while (message := self.next(max(0.1, end - time.monotonic()))) is not None:
            if "method" not in message and message.get("id") == id:
                return message
            self.others.append(message)
        raise AssertionError(f"it ended: {b''.join(self.log).decode(errors='replace')}")

    def ask(self, message):
        self.write(message)
        return self.answer(message["id"])

    def below(self):
        return api.descendants(self.process.pid)

    def wait(self, seconds=api.PATIENCE):
        return self.process.wait(seconds)

    def end(self, signal_number=signal.SIGTERM):
        os.kill(self.process.pid, signal_number)
        return self.wait()
