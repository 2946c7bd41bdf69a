"""The official conformance suite, for both revisions of the protocol: a test for each of its scenarios. What it only
recommends has to hold as well."""
import glob
import json
import os
import shutil
import unittest

import api
import clients

SUITE = os.path.join(clients.MODULES, "@modelcontextprotocol/conformance")
# Run and reported by the suite, but never scored: those that are for what we have.
BESIDES = {"2025-11-25": ["json-schema-2020-12"],
           "2026-07-28": ["json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"]}
GOOD = ("SUCCESS", "INFO", "SKIPPED")


def required(revision):
    """The server's scenarios, from the suite's own list."""
    names, inside = [], False
    with open(os.path.join(SUITE, "requirements", revision + ".yaml")) as f:
        for line in f:
            if line[:1].isalpha():
                inside = line.startswith("server:")
            elif inside and line.startswith("  - "):
                names.append(line[4:].strip())
    return names


class Suite:
    """A server with the fixtures, and what the suite found out about it."""

    revision = ""
    again = 4  # scenarios that may be tried another time

    @classmethod
    def setUpClass(cls):
        cls.server = clients.Fixtures()
        cls.addClassCleanup(cls.server.stop)
        cls.proxy = clients.Proxy(cls.server)
        cls.addClassCleanup(cls.proxy.stop)
        cls.results = api.new_directory()
        cls.addClassCleanup(shutil.rmtree, cls.results)
        cls.done = cls.run_suite("--requirements", cls.revision)

    @classmethod
    def run_suite(cls, *args):
        return clients.node(os.path.join(SUITE, "dist/index.js"), "server", "--url", cls.proxy.url, "--output-dir", cls.results,
                            "--timeout", str(api.PATIENCE * 1000), *args)

    def complaints(self, scenario):
        """Of its last run."""
        found = sorted(glob.glob(os.path.join(glob.escape(self.results), f"server-{scenario}-20*", "checks.json")))
        if not found:
            return [f"it was not run: {self.done.stdout[-2000:]} {self.done.stderr[-2000:]}"]
        with open(found[-1]) as f:
            checks = json.load(f)
        return [f"{c['status']} {c['id']}: {c['description']}: {c.get('errorMessage')}" for c in checks if c["status"] not in GOOD]

    def check(self, scenario):
        found = self.complaints(scenario)
        # Some look at a stream for half a second only, which is little on a busy machine. What is wrong is so each time.
        while found and Suite.again > 0:
            Suite.again -= 1
            self.run_suite("--scenario", scenario, "--spec-version", self.revision)
            found = self.complaints(scenario)
        if found:
            self.fail("\n".join(found))


def suite(revision):
    names = required(revision)
    assert names, f"the suite requires nothing for {revision}"
    tests = {"test_" + name.replace("-", "_"): lambda self, name=name: self.check(name) for name in names + BESIDES[revision]}
    return type("Revision_" + revision.replace("-", "_"), (Suite, unittest.TestCase), {"revision": revision, **tests})


Revision_2025_11_25 = suite("2025-11-25")
Revision_2026_07_28 = suite("2026-07-28")
