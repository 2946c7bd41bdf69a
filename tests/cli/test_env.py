"""retort env: what there is, for people, programs and models."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import cli
from test_wheels import wheel


class Listing(cli.Case):
    @classmethod
    def setUpClass(cls):
        cls.found = json.loads(cli.run("env", "--json").out)
        cls.libraries = {each["name"]: each for each in cls.found["libraries"]}

    def test_versions_are_those_of_the_box(self):
        modules = {each["import"]: each["version"] for each in self.found["libraries"]
                   if each["import"] in ("numpy", "pandas", "matplotlib", "PIL", "yaml", "bs4", "requests")}
        code = f"import importlib; print({{m: importlib.import_module(m).__version__ for m in {sorted(modules)}}})"
        self.assertEqual(eval(cli.run("run", "-c", code).out), modules)
        self.assertEqual(self.found["python"], cli.run("run", "-c", "import platform; print(platform.python_version())").out.strip())

    def test_core_is_complete(self):
        for name in ("numpy pandas matplotlib seaborn scipy scikit-learn statsmodels sympy networkx Pillow openpyxl XlsxWriter xlrd "
                     "odfpy lxml beautifulsoup4 tabulate PyYAML python-dateutil sqlite3 requests tqdm psutil ipython").split():
            self.assertEqual(self.libraries[name]["group"], "core", name)
            self.assertRegex(self.libraries[name]["version"], r"^\d+\.\d", name)

    def test_for_people(self):
        done = cli.run("env")
        self.assertStatus(done, 0)
        lines = done.out.splitlines()
        self.assertEqual(lines[0], f"Python {self.found['python']}")
        self.assertRegex(done.out, r"\n\ncore\n  numpy {20}1\.\d+\.\d+ +arrays and linear algebra\n")
        for each in self.found["libraries"]:
            self.assertIn(f"  {each['name']} ", done.out)
        for each in self.found["commands"]:
            self.assertIn(f"  {each['name']} (command) ", done.out)

    def test_for_models(self):
        done = cli.run("env", "--prompt")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, self.found["description"] + "\n")
        self.assertLess(len(done.out), 1200)
        for part in (f"Python {self.found['python']}", "without network", "/mnt/data", "pandas 1.", "Nothing else can be installed."):
            self.assertIn(part, done.out)

    def test_on_a_server(self):
        server = cli.Server()
        self.addCleanup(server.stop)
        done = cli.run("env", "--json", "--server", server.link)
        self.assertStatus(done, 0)
        self.assertEqual(json.loads(done.out), self.found)

    def test_wrong_words(self):
        for args in (("env", "all"), ("env", "--json", "--prompt"), ("env", "--environment", "/nowhere"), ("env", "--memory", "1g")):
            done = cli.run(*args)
            self.assertStatus(done, 2)
            self.assertEqual(done.out, "")


# What conda's Python has besides its library; here it comes from Debian's.
LENT = """IPython traitlets decorator.py pygments stack_data executing asttokens pure_eval six.py backcall pickleshare.py
          matplotlib_inline prompt_toolkit wcwidth pexpect ptyprocess jedi parso pip pkg_resources setuptools""".split()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def make_prefix(prefix):
    """What conda lays out, of this system's own Python: bin/python, lib/pythonX.Y, conda-meta."""
    version = "python%d.%d" % sys.version_info[:2]
    library = os.path.join(prefix, "lib", version)
    packages = os.path.join(library, "site-packages")
    write(f"{prefix}/conda-meta/history", "==> by hand <==\n")
    os.makedirs(os.path.join(prefix, "bin"))
    shutil.copy(os.path.realpath("/usr/bin/python3"), os.path.join(prefix, "bin", version))
    for name in ("python", "python3"):
        os.symlink(version, os.path.join(prefix, "bin", name))
    # Without what Debian has put there.
    shutil.copytree(f"/usr/lib/{version}", library, ignore=shutil.ignore_patterns(
        "EXTERNALLY-MANAGED", "sitecustomize.py", "dist-packages", "__pycache__", "test", "idlelib", "tkinter"))
    for name in LENT:
        found = os.path.join("/usr/lib/python3/dist-packages", name)
        if os.path.isdir(found):
            shutil.copytree(found, os.path.join(packages, name), ignore=shutil.ignore_patterns("__pycache__"))
        elif os.path.exists(found):
            shutil.copy(found, packages)
    write(f"{packages}/only_here.py", "where = __file__\n")
    write(f"{packages}/only_here-2.5.dist-info/METADATA",
          "Metadata-Version: 2.1\nName: only-here\nVersion: 2.5\nSummary: for a test\n")
    # Debian's Python calls the place by another name.
    write(f"{library}/sitecustomize.py", f"import site, sys\nsite.addsitedir(sys.prefix + '/lib/{version}/site-packages')\n")


class Conda(cli.Case):
    """A conda prefix: an interpreter with its library and its packages, all outside /usr."""

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.mkdtemp(prefix="cli-", dir=os.path.dirname(cli.RETORT))
        cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
        os.chmod(cls.place, 0o755)
        cls.prefix = os.path.join(cls.place, "conda")
        make_prefix(cls.prefix)

    def test_a_conda_prefix(self):
        prefix = self.prefix
        done = cli.run("run", "--environment", prefix, "-c",
                       "import sys, os, only_here, json\nprint(sys.prefix, sys.base_prefix, os.__file__)\nprint(only_here.where)\n"
                       "print('numpy' in sys.modules, os.access(sys.prefix, os.W_OK))\n"
                       "!python -c 'import sys, only_here; print(sys.prefix)'\nimport numpy")
        self.assertStatus(done, 1)
        first, where, facts, child = done.out.splitlines()
        self.assertEqual(first.split()[:2], [prefix, prefix])
        self.assertTrue(first.split()[2].startswith(prefix + "/lib/"), first)
        self.assertTrue(where.startswith(prefix), where)
        self.assertEqual(facts, "False False")
        self.assertEqual(child, prefix)
        self.assertIn("numpy is not installed here, and there is no network to install it from. The operator of this machine can add "
                      "it: see retort-environment(5)", done.err)

    def test_what_is_in_it(self):
        done = cli.run("env", "--json", "--environment", self.prefix)
        self.assertStatus(done, 0)
        found = json.loads(done.out)
        names = {each["name"]: each for each in found["libraries"]}
        self.assertEqual(names["only-here"], {"name": "only-here", "import": "only_here", "version": "2.5", "group": "other",
                                              "about": "for a test"})
        self.assertNotIn("numpy", names)
        self.assertNotIn("numpy", found["description"])
        self.assertIn("only-here", found["description"])

    def test_wheels_in_it(self):
        name, data = wheel("tiny_flask", "x = 7\n")
        self.write(f"wheels/{name}", data)
        done = cli.run("run", "--environment", self.prefix, "--wheels", self.path("wheels"), "-c",
                       "%pip install -q tiny-flask\nimport tiny_flask; print(tiny_flask.x, tiny_flask.__file__)")
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"^7 /home/user/\.local/")


class Own(cli.Case):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="cli-", dir=os.path.dirname(cli.RETORT))
        os.chmod(self.dir, 0o755)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def test_a_venv(self):
        path = self.path("venv")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages", path], check=True)
        done = cli.run("env", "--environment", path)
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"\n  pandas +1\.")

    def test_wheels_are_told(self):
        self.write("wheels/some_thing-1.0-py3-none-any.whl", "")
        done = cli.run("env", "--wheels", self.path("wheels"))
        self.assertTrue(done.out.endswith("\n\nfor pip install\n  some-thing\n"), done.out[-300:])
        done = cli.run("env", "--prompt", "--wheels", self.path("wheels"))
        self.assertTrue(done.out.endswith("pip install works for these alone: some-thing.\n"), done.out)
