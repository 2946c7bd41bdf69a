"""--environment: other interpreters than the system's."""
import os
import shutil
import subprocess
import tempfile
import unittest

import cli


class Environment(cli.Case):
    def setUp(self):
        super().setUp()
        self.use(tempfile.mkdtemp(prefix="cli-", dir=os.path.dirname(cli.RETORT)))

    def use(self, directory):
        self.dir = directory
        os.chmod(directory, 0o755)
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)

    def make_venv(self, name="venv", python="/usr/bin/python3"):
        path = self.path(name)
        subprocess.run([python, "-m", "venv", "--without-pip", "--system-site-packages", path],
                       check=True)
        lib = os.path.join(path, "lib")
        version = os.listdir(lib)[0]
        with open(os.path.join(lib, version, "site-packages", "only_here.py"), "w") as f:
            f.write("where = __file__\n")
        return path

    def configure(self, text, name="own"):
        self.write(f"config/retort/environments/{name}.conf", text)
        return {"XDG_CONFIG_HOME": self.path("config")}

    def test_default_has_nothing_of_a_venv(self):
        done = cli.run("run", "-c", "import only_here")
        self.assertStatus(done, 1)
        self.assertIn("ModuleNotFoundError", done.err)

    def test_venv(self):
        path = self.make_venv()
        done = cli.run("run", "--environment", path, "-c",
                       "import sys, only_here, pandas\nprint(sys.prefix)\nprint(only_here.where)\n"
                       "print(sys.executable)")
        self.assertStatus(done, 0)
        prefix, where, executable = done.out.splitlines()
        self.assertEqual(prefix, path)
        self.assertTrue(where.startswith(path))
        self.assertEqual(executable, os.path.join(path, "bin/python3"))

    def test_venv_below_tmp(self):
        """A box has a /tmp of its own, which must not hide it."""
        self.use(tempfile.mkdtemp(prefix="retort-cli-", dir="/tmp"))
        path = self.make_venv()
        done = cli.run("run", "--environment", path, "-c",
                       "import sys, os, only_here\nprint(sys.prefix)\nopen('/tmp/x', 'w').close()\n"
                       "print(sorted(os.listdir('/tmp')))")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, f"{path}\n['{os.path.basename(self.dir)}', 'x']\n")

    def test_venv_below_a_private_home(self):
        """Of which only the owner may list the directories above it."""
        os.chmod(self.dir, 0o700)
        path = self.make_venv()
        done = cli.run("run", "--environment", path, "-c", "import sys; print(sys.prefix)")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, path + "\n")

    def test_venv_is_read_only_and_alone(self):
        path = self.make_venv()
        self.write("neighbour.txt", "private")
        done = cli.run("run", "--environment", path, "-c",
                       f"import os\nprint(os.listdir({self.dir!r}))\n"
                       f"try: open({path!r} + '/x', 'w')\nexcept OSError as e: print('refused')")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "['venv']\nrefused\n")

    def test_venv_relative_and_through_a_symlink(self):
        path = self.make_venv()
        os.symlink("venv", self.path("link"))
        for name in ("./venv", "link/", "./link"):
            with self.subTest(name=name):
                done = cli.run("run", "--environment", name, "-c", "import sys; print(sys.prefix)",
                               cwd=self.dir)
                self.assertStatus(done, 0)
                self.assertEqual(done.out, path + "\n")

    def test_subprocess_in_a_venv(self):
        path = self.make_venv()
        done = cli.run("run", "--environment", path, "-c",
                       "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', "
                       "'import only_here; print(1)'], capture_output=True, text=True).stdout)")
        self.assertStatus(done, 0)
        self.assertEqual(done.out.strip(), "1")

    def test_venv_of_a_venv(self):
        first = self.make_venv("first")
        second = self.make_venv("second", os.path.join(first, "bin/python3"))
        done = cli.run("run", "--environment", second, "-c", "import sys; print(sys.prefix)")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, second + "\n")

    def test_repl_and_doctor(self):
        path = self.make_venv()
        done = cli.run("repl", "--environment", path, input="import sys; print(sys.prefix)\n")
        self.assertEqual(done.out, path + "\n")
        self.assertStatus(cli.run("doctor", "--environment", path), 0)

    def test_by_name(self):
        path = self.make_venv()
        env = self.configure(f"# mine\n\npython = {path}/bin/python3\npreload = colorsys  wave  # both\n")
        done = cli.run("run", "--environment", "own", "-c",
                       "import sys\nprint(sys.prefix, 'wave' in sys.modules)", env=env)
        self.assertStatus(done, 0)
        self.assertEqual(done.out, f"{path} True\n")

    def test_additional_paths(self):
        self.write("data/x.txt", "shared")
        env = self.configure(f"python = /usr/bin/python3\npaths = {self.path('data')}\n")
        done = cli.run("run", "--environment", "own", "-c",
                       f"print(open('{self.path('data/x.txt')}').read())", env=env)
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "shared\n")

    def test_mistakes_in_a_file(self):
        for text, says in (("python = /usr/bin/python3\npyton = x\n", r"own\.conf:2: .*pyton"),
                           ("nonsense\n", r"own\.conf:1: .*key = value"),
                           ("paths = /usr\n", r"own\.conf: .*python = ….*missing"),
                           ("python = python3\n", r"own\.conf:1: .*absolute"),
                           ("python = /nowhere/python3\n", r"own\.conf:1: .*no interpreter"),
                           ("python = /usr/bin/python3\npaths = /nowhere\n", r"own\.conf:2: "),
                           ("python = /usr/bin/python3\npreload = a;b\n", r"own\.conf:2: ")):
            with self.subTest(text=text):
                done = cli.run("run", "--environment", "own", "-c", "1", env=self.configure(text))
                self.assertStatus(done, 2)
                self.assertRegex(done.err, says)

    def test_too_much_is_not_shown(self):
        os.symlink("/etc", self.path("alias"))
        home = os.environ.get("HOME", "/root")
        for path in ("/", "/home", "/root", "/etc", "/var", "/run", "/tmp", "/proc/self", "/sys",
                     "/home/anyone", "/var/lib", home, self.path("alias")):
            with self.subTest(path=path):
                env = self.configure(f"python = /usr/bin/python3\npaths = {path}\n")
                done = cli.run("run", "--environment", "own", "-c", "1", env=env)
                self.assertStatus(done, 2)
                self.assertRegex(done.err, "own.conf:2: .*cannot be shown")

    def test_an_interpreter_that_does_not_start(self):
        os.makedirs(self.path("broken/bin"))
        shutil.copy("/bin/false", self.path("broken/bin/python3"))
        done = cli.run("run", "--environment", self.path("broken"), "-c", "print(1)")
        self.assertStatus(done, 125)
        self.assertEqual(done.out, "")
        self.assertIn("step zygote-start", done.err)

    def test_an_interpreter_that_is_no_program_says_why(self):
        os.makedirs(self.path("garbage/bin"))
        with open(self.path("garbage/bin/python3"), "wb") as f:
            f.write(b"\x7fELF, or not")
        os.chmod(self.path("garbage/bin/python3"), 0o755)
        done = cli.run("run", "--environment", self.path("garbage"), "-c", "print(1)")
        self.assertStatus(done, 125)
        self.assertIn("cannot start", done.err)
        self.assertIn("Exec format error", done.err)


@unittest.skipUnless(os.geteuid() == 0, "only root can mount")
class Mounts(cli.Case):
    """A host that has more than one file system."""

    def run_among(self, mounts, code, user=None):
        made = "".join(f"mount -t tmpfs -o mode=755 tmpfs {each} && " for each in mounts)
        script = f'{made} mkdir "/usr/local/a b" && echo kept >/usr/local/file && exec "$@"'
        line = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh",
                *cli.command("run", "-c", code, user=user)]
        done = subprocess.run(line, capture_output=True, env=cli.plain_environment(), timeout=cli.PATIENCE)
        return cli.Done(done.returncode, done.stdout, done.stderr)

    def test_a_mount_below_usr(self):
        code = ("import os; print(sorted(os.listdir('/usr')), sorted(os.listdir('/usr/local')), "
                "open('/usr/local/file').read(), open('/lib/os-release').read() != '')")
        for user in (None, cli.NOBODY):
            with self.subTest(user=user):
                done = self.run_among(["/usr/local"], code, user)
                self.assertStatus(done, 0)
                self.assertEqual(done.out, f"{sorted(os.listdir('/usr'))} ['a b', 'file'] kept\n True\n")

    def test_one_among_too_many_says_so(self):
        done = self.run_among(["/usr/local", "/usr/share/doc"], "1")
        self.assertStatus(done, 125)
        self.assertIn("something is mounted below /usr/share", done.err)
