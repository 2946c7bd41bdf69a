"""docs/MCP.md, taken at its word: what a user would copy from it."""
import ast
import json
import os
import re
import shlex
import subprocess
import tempfile
import tomllib
import unittest

import api
import clients
from test_inspector import INSPECTOR

PAGE = os.path.join(clients.HERE, "../../docs/MCP.md")
LISTS = ("mcpServers", "servers", "context_servers", "mcp_servers")  # what clients call their list of servers


def text():
    with open(PAGE) as f:
        return f.read()


def blocks(language):
    found = re.findall(rf"^```{language}\n(.*?)^```$", text(), re.M | re.S)
    assert found, f"there is no {language} on the page"
    return found


def entry(settings):
    """The one server in a client's settings."""
    (name, servers), = settings.items()
    assert name in LISTS, name
    (name, server), = servers.items()
    assert name == "retort", name
    return server


def lines():
    """Every command line of `retort mcp` on the page, without the program."""
    lists = [ast.literal_eval(found) for found in re.findall(r"""\bargs["']?\s*[:=]\s*(\[[^\]]*\])""", text())]
    lists += [shlex.split(found) for found in re.findall(r"-- retort (mcp\b.*)", text())]
    return sorted({tuple(args) for args in lists if args[0] == "mcp"})


def environment(directory):
    """In which `retort` is found."""
    own = os.path.dirname(os.path.realpath(api.RETORT))
    return {**api.plain_environment(), "PATH": f"{own}:{os.environ['PATH']}", "HOME": directory, "NO_COLOR": "1"}


class Documentation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = api.Server()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="retort-api-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def filled(self, block):
        """With what stands for the user's own replaced."""
        url = f"http://{self.server.address}:{self.server.port}"
        return block.replace("URL/mcp", url + "/mcp").replace("TOKEN", self.server.token)

    def write(self, name, content):
        path = os.path.join(self.directory, name)
        with open(path, "w") as f:
            f.write(content)
        return path

    def succeeds(self, *command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=clients.LONG,
                              env=environment(self.directory), cwd=self.directory)
        self.assertEqual(done.returncode, 0, done)
        return done

    def test_settings(self):
        """They parse, and name either a program or an address."""
        for server in [entry(json.loads(b)) for b in blocks("json")] + [entry(tomllib.loads(b)) for b in blocks("toml")]:
            with self.subTest(server=server):
                self.assertNotEqual("command" in server, "url" in server)
                if "url" in server:
                    self.assertEqual(server["url"], "URL/mcp")
                    self.assertTrue("bearer_token_env_var" in server or
                                    server["headers"] == {"Authorization": "Bearer TOKEN"})
                else:
                    self.assertIn(server["command"], ("retort", "npx"))

    def test_python(self):
        for block in blocks("python"):
            compile(block, PAGE, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    def test_command_lines(self):
        """Each is accepted, says nothing, and ends with its input."""
        self.assertIn(("mcp",), lines())
        self.assertTrue(any("--files" in line for line in lines()))
        for line in lines():
            with self.subTest(line=line):
                done = self.succeeds("retort", *[self.directory if word == "DIR" else word for word in line])
                self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_inspector(self):
        """The lists that it shares with others are its settings too."""
        tried = 0
        for block in blocks("json"):
            settings = json.loads(block)
            if "mcpServers" not in settings or entry(settings).get("command") == "npx":
                continue
            path = self.write("mcp.json", self.filled(block))
            done = self.succeeds(clients.NODE, INSPECTOR, "--cli", "--config", path, "--server", "retort", "--connect-timeout",
                                 str(api.PATIENCE * 1000), "--method", "tools/call", "--tool-name", "run_python", "--tool-arg",
                                 "code=6 * 7")
            self.assertIn("42", json.loads(done.stdout)["content"][0]["text"])
            tried += 1
        self.assertEqual(tried, 2)

    def test_sdk(self):
        """The programs run as they are."""
        os.symlink(clients.MODULES, os.path.join(self.directory, "node_modules"))
        for block in blocks("js"):
            with self.subTest(block=block):
                done = self.succeeds(clients.NODE, self.write("client.mjs", self.filled(block)))
                self.assertIn("42", done.stdout)

    def test_curl(self):
        line, = [b for b in blocks("sh") if b.startswith("curl ")]
        self.assertIn("42", self.succeeds("sh", "-c", self.filled(line)).stdout)
