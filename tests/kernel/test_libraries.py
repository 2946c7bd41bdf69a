"""What is said of libraries that are missing, and that the table of them is true."""
import os
import subprocess
import unittest

from owner import ROOT
from retort_kernel import libraries
from test_cells import Case

# Of the groups, what nobody imports or calls by name.
BENEATH = {"libopenblas0-pthread", "libraqm0", "procps", "coinor-cbc", "libreoffice-calc-nogui", "libreoffice-impress-nogui"}
GROUPS = ("core", "documents", "media", "more")


def packages():
    with open(os.path.join(ROOT, "tools", "packages")) as file:
        lines = (line.partition(":") for line in file if line[0] not in "#\n")
        return {group: set(names.split()) for group, _, names in lines}


class Table(unittest.TestCase):
    def setUp(self):
        self.table = libraries.read()
        self.installed = [entry for entry in self.table if not isinstance(entry, libraries.Elsewhere)]

    def test_it_agrees_with_the_packages(self):
        groups = packages()
        for entry in self.installed:
            with self.subTest(entry.name):
                self.assertIn(entry.package, groups[entry.group])
        named = {entry.package for entry in self.installed}
        for group in GROUPS:
            self.assertEqual({p for p in groups[group] - named - BENEATH if not p.startswith("fonts-")}, set(), group)

    def test_make_knows_the_groups(self):
        for group in (*GROUPS, "fonts"):
            done = subprocess.run(["make", "-n", group], cwd=ROOT, capture_output=True, text=True)
            self.assertIn(f"tools/install {group}", done.stdout, done.stderr)

    def test_names_are_there_once(self):
        for names in ([e.name for e in self.table], [e.module for e in self.table if not isinstance(e, libraries.Command)]):
            self.assertEqual(len(names), len(set(names)), sorted(n for n in names if names.count(n) > 1))

    def test_every_line_is_whole(self):
        for entry in self.table:
            self.assertTrue(all(entry), entry)


class Hints(Case):
    def fails(self, code, name="ModuleNotFoundError"):
        cell = self.session.run(code)
        self.assertEqual(cell.status, "error", cell.outputs)
        self.assertEqual(cell.error[0], name)
        return cell

    def hint(self, code, name="ModuleNotFoundError"):
        """What is said beside the exception's own text, which stays."""
        cell = self.fails(code, name)
        own, _, hint = cell.error[1].partition("\n")
        if hint:
            self.assertTrue(cell.traceback.endswith(f"{name}: {own}\n{hint}\n"), cell.traceback)
        return own, hint

    def test_known(self):
        own, hint = self.hint("import polars as pl")
        self.assertEqual(own, "No module named 'polars'")
        self.assertIn("polars is not installed here, and there is no network", hint)
        self.assertIn("Instead use pandas.", hint)
        self.assertIn("retort-environment(5)", hint)

    def test_no_network(self):
        gone = "import socket\ntry: raise socket.gaierror(-2, 'Name or service not known')\n"
        own, hint = self.hint(gone + "except OSError as e: raise ConnectionError('tried') from e", "ConnectionError")
        self.assertEqual((own, hint), ("tried", libraries.NO_NETWORK))
        own, hint = self.hint("raise OSError('Could not find a suitable TLS CA certificate bundle, invalid path: x')", "OSError")
        self.assertEqual(hint, libraries.NO_NETWORK)
        self.assertEqual(self.hint("raise OSError('another')", "OSError")[1], "")
        # What it is said to come from counts, and not what was there before.
        self.assertEqual(self.hint(gone + "except OSError: raise ConnectionError('tried') from KeyError(1)", "ConnectionError")[1], "")

    def test_pip_as_a_process(self):
        own, hint = self.hint("import subprocess\nraise subprocess.CalledProcessError(1, ['python3', '-m', 'pip', 'install', 'polars'])",
                              "CalledProcessError")
        self.assertIn("pip can install nothing", hint)
        self.assertIn("Instead use pandas.", hint)
        own, hint = self.hint("raise subprocess.CalledProcessError(1, 'pip install numpy nobody-knows-this')", "CalledProcessError")
        self.assertNotIn("numpy", hint)
        self.assertIn("can add packages: see retort-environment(5)", hint)
        self.assertEqual(self.hint("subprocess.run(['false'], check=True)", "CalledProcessError")[1], "")

    def test_of_a_group(self):
        """As if it were not installed."""
        self.run_ok("import sys\nsys.modules['docx'] = None")
        own, hint = self.hint("import docx")
        self.assertIn("make documents (Debian's python3-docx)", hint)

    def test_in_a_function_of_a_library(self):
        own, hint = self.hint("raise ImportError(\"Unable to find a usable engine; tried using: 'pyarrow', 'fastparquet'.\")",
                              "ImportError")
        self.assertIn("pyarrow is not installed here", hint)

    def test_what_it_comes_from(self):
        own, hint = self.hint("try:\n    import torch\nexcept ImportError:\n    raise ImportError('I need more')", "ImportError")
        self.assertEqual(own, "I need more")
        self.assertIn("torch is not installed here", hint)
        own, hint = self.hint("try:\n    import torch\nexcept ImportError:\n    raise ModuleNotFoundError('x', name=['x'])")
        self.assertIn("torch is not installed here", hint)

    def test_by_the_name_on_pypi(self):
        own, hint = self.hint("import beautifulsoup4")
        self.assertEqual(hint, "beautifulsoup4 is here, under another name: import bs4")

    def test_only_what_is_there_is_proposed(self):
        self.run_ok("import sys\nsys.modules['fitz'] = None; sys.modules['pdfminer'] = None")
        self.assertNotIn("Instead", self.hint("import pdfplumber")[1])

    def test_none(self):
        for code in ("import pandsa", "import json.nothing", "import numpy.nothing",
                     "import importlib; importlib.import_module('.x', 'json')"):
            self.assertEqual(self.hint(code)[1], "", code)
        self.assertEqual(self.hint("from json import polars", "ImportError")[1], "")
        self.assertEqual(self.hint("raise ModuleNotFoundError('x', name='numpy')")[1], "")
        self.assertEqual(self.hint("raise KeyError('polars')", "KeyError")[1], "")

    def test_hostile(self):
        """The exception, its links and what we ask with are the user's."""
        for code, name in (("raise ModuleNotFoundError(name=['polars'])", "ModuleNotFoundError"),
                           ("e = ModuleNotFoundError(name='x'); e.__cause__ = e; raise e", "ModuleNotFoundError"),
                           ("class E(ImportError):\n    name = property(lambda s: 1/0)\nraise E('x')", "E"),
                           ("class E(ImportError):\n    def __str__(s): return \"'polars\" * 10**6\nraise E", "E")):
            self.fails(code, name)
        self.run_ok("import builtins, importlib, importlib.util, re\n"
                    "importlib.util.find_spec = None; re.match = None; re.sub = None; del builtins.sorted")
        self.assertIn("No module named 'polars'", self.fails("import polars").error[1])
