"""The official inspector on the command line, in both eras of the protocol and on both transports."""
import json
import os
import unittest

import api
import clients

INSPECTOR = os.path.join(clients.MODULES, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
TOOL_FAILED = 5  # its exit status for a result that is an error


class Inspected:
    """Each call is a process of its own."""

    era, http = "", False

    @classmethod
    def setUpClass(cls):
        if cls.http:
            cls.server = api.Server()
            cls.addClassCleanup(cls.server.stop)

    def inspect(self, method, *args, status=0):
        """Its result, and what it wrote to stderr."""
        if self.http:
            target = [f"http://{self.server.address}:{self.server.port}/mcp", "--transport", "http", "--header",
                      f"Authorization: Bearer {self.server.token}"]
        else:
            target = [api.RETORT, *clients.MCP, "--transport", "stdio"]
        done = clients.node(INSPECTOR, "--cli", *target, "--protocol-era", self.era, "--connect-timeout", str(api.PATIENCE * 1000),
                            "--format", "json", "--method", method, *args)
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout)["result"], done.stderr

    def call(self, tool, status=0, **arguments):
        return self.inspect("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments), status=status)[0]

    def test_schemas(self):
        """Its lint has nothing to say: no client has to guess what a schema means."""
        result, complaints = self.inspect("tools/list", "--strict")
        self.assertIn("run_python", [t["name"] for t in result["tools"]])
        for word in ("Warning:", "Error:", "Schema portability"):
            self.assertNotIn(word, complaints)

    def test_result(self):
        result = self.call("run_python", code="6 * 7")
        self.assertIn("42", result["content"][0]["text"])
        self.assertEqual(result["structuredContent"]["status"], "ok")

    def test_error(self):
        result = self.call("run_python", status=TOOL_FAILED, code="{}['missing']")
        self.assertTrue(result["isError"])
        self.assertIn("Traceback", result["content"][0]["text"])
        self.assertIn("KeyError: 'missing'", result["content"][0]["text"])

    def test_image(self):
        result = self.call("run_python", code="import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
        self.assertEqual([c["mimeType"] for c in result["content"] if c["type"] == "image"], ["image/png"])

    def test_lists(self):
        self.assertIn("resources", self.inspect("resources/list")[0])
        templates = self.inspect("resources/templates/list")[0]["resourceTemplates"]
        self.assertEqual([t["uriTemplate"] for t in templates], ["retort://{session}/{+path}"])


class OverHttp(Inspected):
    http = True

    def test_state(self):
        """Sessions outlive a connection, so calls of several processes share one."""
        session = self.call("run_python", code="x = 20")["structuredContent"]["session"]
        self.assertIn("41", self.call("run_python", code="x * 2 + 1", session=session)["content"][0]["text"])

    def test_file(self):
        result = self.call("run_python", code="open('a b.txt', 'w').write('content')")
        link = next(c for c in result["content"] if c["type"] == "resource_link")
        found = self.inspect("resources/read", "--uri", link["uri"])[0]["contents"]
        self.assertEqual([f["text"] for f in found], ["content"])

    def test_load(self):
        session = self.call("run_python", code="pass")["structuredContent"]["session"]
        args = json.dumps({"session": session})
        result, _ = self.inspect("tools/call", "--tool-name", "list_files", "--tool-args-json", args, "--load",
                                 "--load-requests", "100", "--load-concurrency", "8")
        self.assertEqual((result["ok"], result["toolErrors"], result["errors"]), (100, 0, 0), result)


class LegacyHttp(OverHttp, unittest.TestCase):
    era = "legacy"


class ModernHttp(OverHttp, unittest.TestCase):
    era = "modern"


class LegacyStdio(Inspected, unittest.TestCase):
    era = "legacy"


class ModernStdio(Inspected, unittest.TestCase):
    era = "modern"
