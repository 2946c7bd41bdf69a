"""The official SDK's clients, old and new, on both transports: a process of theirs for each, and a test for each thing that
it tried."""
import json
import unittest

import api
import clients

RETORT = ("hello", "tools", "state", "error", "image", "file", "no_such_resource", "write_and_read", "progress",
          "no_progress_unasked", "cancel", "time_limit", "states", "end", "wrong_arguments", "at_once", "updates", "much_output",
          "many_pictures", "big_files")
FIXTURES = ("ask_user", "ask_model", "several_rounds", "steps", "prompts")


class Driven:
    """One client on one server."""

    kind, transport, tries, names = "", "", "", ()

    @classmethod
    def setUpClass(cls):
        task = {"kind": cls.kind, "tries": cls.tries, "names": cls.names}
        server = None
        if cls.transport == "http":
            server = clients.Fixtures() if cls.tries == "fixtures" else api.Server()
            task |= {"url": f"http://{server.address}:{server.port}/mcp", "token": server.token}
        else:
            task |= {"command": [clients.fixtures() if cls.tries == "fixtures" else api.RETORT, *clients.MCP]}
        try:
            cls.done = clients.node("drive.mjs", json.dumps(task))
        finally:
            if server:
                server.stop()
        cls.found = clients.report(cls.done.stdout)

    def check(self, name):
        self.assertIn(name, self.found, f"it was not tried: {self.done.stdout[-2000:]}\n{self.done.stderr[-5000:]}")
        if error := self.found[name].get("error"):
            self.fail(f"{error}\n{self.done.stderr[-2000:]}")

    def test_close(self):
        """It went by itself, and the client met nothing that it did not understand."""
        self.check("close")
        self.assertEqual(self.done.returncode, 0, self.done)
        known = ["abort"] + (["unknown token"] if self.transport == "stdio" else [])  # see "steps"
        errors = [e for e in self.found["close"]["errors"] if not any(k in e.lower() for k in known)]
        self.assertEqual(errors, [])
        if self.transport == "stdio":  # the clients wait 2 s before they send a signal
            self.assertLess(self.found["close"]["seconds"], api.SOON)


def driven(kind, transport, tries, names):
    tests = {"test_" + name: lambda self, name=name: self.check(name) for name in names}
    name = f"{tries}_{kind}_{transport}".title().replace("-", "_")
    return type(name, (Driven, unittest.TestCase), {"kind": kind, "transport": transport, "tries": tries, "names": names, **tests})


for each in [driven(kind, transport, tries, names)
             for kind in ("old", "new-legacy", "new-modern") for transport in ("http", "stdio")
             for tries, names in (("retort", RETORT), ("fixtures", FIXTURES))]:
    globals()[each.__name__] = each
del each
