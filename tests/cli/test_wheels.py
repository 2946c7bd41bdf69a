"""pip in a box: from a folder of wheels, and without one."""
import base64
import hashlib
import io
import os
import shutil
import subprocess
import tempfile
import zipfile

import cli


def wheel(name, code, requires=()):
    """The bytes of a wheel with one module and one command, and the name of its file."""
    files = {f"{name}.py": code, f"{name}-1.5.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\n"
             "Root-Is-Purelib: true\nTag: py3-none-any\n",
             f"{name}-1.5.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n"
             + "".join(f"Requires-Dist: {each}\n" for each in requires),
             f"{name}-1.5.dist-info/entry_points.txt": f"[console_scripts]\n{name}-say = {name}:say\n"}
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text)}\n"
    files[f"{name}-1.5.dist-info/RECORD"] = record + f"{name}-1.5.dist-info/RECORD,,\n"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return f"{name}-1.5-py3-none-any.whl", data.getvalue()


class Case(cli.Case):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="cli-", dir=os.path.dirname(cli.RETORT))
        os.chmod(self.dir, 0o755)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def make_wheels(self, place="wheels"):
        for name, data in (wheel("tiny_flask", "def say(): print('tiny', 6 * 7)\n"),
                           wheel("tiny_retort", "import tiny_flask\nanswer = 42\n", ["tiny-flask>=1"])):
            self.write(os.path.join(place, name), data)
        return self.path(place)

    def make_venv(self, *options):
        path = self.path("venv")
        subprocess.run(["/usr/bin/python3", "-m", "venv", *options, path], check=True)
        return path

    def lend_ipython(self, venv):
        """Without the system's packages it would need an index; one directory more will do."""
        place = os.path.join(venv, "lib", os.listdir(os.path.join(venv, "lib"))[0], "site-packages", "lent.pth")
        with open(place, "w") as file:
            file.write("/usr/lib/python3/dist-packages\n")


INSTALL = ("%pip install -q tiny-retort", "!pip install -q tiny_retort", "!python3 -m pip install -q tiny-retort",
           "!python -m pip install -q 'tiny-retort==1.5'",
           "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', '-q', 'tiny-retort'])")


class Installing(Case):
    def check(self, install, *args, user=None, env=None):
        with cli.Repl(*args, user=user, env=env) as repl:
            # That it is not there is remembered by the interpreter, and must not stay so.
            first = repl.cell("import tiny_retort")
            self.assertEqual(first["error"]["value"], "No module named 'tiny_retort'")
            done = repl.cell(install)
            self.assertEqual((done["status"], cli.text(done, "stderr")), ("ok", ""), done)
            found = repl.cell("import tiny_retort, tiny_flask\nprint(tiny_retort.answer, tiny_flask.__file__)")
            self.assertEqual(found["status"], "ok", found)
            self.assertRegex(cli.text(found), r"^42 /home/user/\.local/lib/python3\.\d+/site-packages/tiny_flask\.py$")
            self.assertEqual(cli.text(repl.cell("!tiny_flask-say")), "tiny 42\n")
            own = repl.cell("!python -c 'import tiny_retort; print(tiny_retort.answer)'")
            self.assertEqual(cli.text(own), "42\n", own)

    def test_every_way(self):
        wheels = self.make_wheels()
        for install in INSTALL:
            with self.subTest(install):
                self.check(install, "--wheels", wheels)

    def test_as_an_ordinary_user(self):
        self.check(INSTALL[0], "--wheels", self.make_wheels(), user=cli.NOBODY)

    def test_in_a_venv(self):
        venv = self.make_venv()
        self.lend_ipython(venv)
        wheels = self.make_wheels()
        for install in (INSTALL[0], INSTALL[1], INSTALL[4]):
            with self.subTest(install):
                self.check(install, "--environment", venv, "--wheels", wheels)

    def test_in_a_venv_with_the_system_s_packages(self):
        self.check(INSTALL[0], "--environment", self.make_venv("--system-site-packages"), "--wheels", self.make_wheels())

    def test_named_by_the_environment(self):
        wheels = self.make_wheels()
        self.write("config/retort/environments/own.conf", f"python = /usr/bin/python3\nwheels = {wheels}\n")
        other = self.path("other")
        os.mkdir(other)
        self.check(INSTALL[0], "--environment", "own", "--wheels", other, env={"XDG_CONFIG_HOME": self.path("config")})

    def test_below_tmp_and_a_relative_path(self):
        """Seen under its own name in the box, where /tmp is another."""
        place = tempfile.mkdtemp(prefix="retort-cli-", dir="/tmp")
        self.addCleanup(shutil.rmtree, place)
        os.chmod(place, 0o755)
        for name, data in (wheel("tiny_flask", "x = 1\n"),):
            with open(os.path.join(place, name), "wb") as file:
                file.write(data)
        done = cli.run("run", "--wheels", f"./{os.path.basename(place)}", "-c",
                       "import os; print(os.listdir('/opt/retort/wheels'), os.listdir('/tmp'))\n"
                       "%pip install -q tiny-flask\nimport tiny_flask; print(tiny_flask.x)", cwd="/tmp")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "['tiny_flask-1.5-py3-none-any.whl'] []\n1\n")

    def test_in_a_session_that_died(self):
        with cli.Repl("--wheels", self.make_wheels()) as repl:
            repl.cell(INSTALL[0])
            repl.cell("import os; os.kill(os.getpid(), 9)")
            self.assertEqual(cli.text(repl.cell("import tiny_retort; print(tiny_retort.answer)")), "42\n")

    def test_a_server_has_them(self):
        server = cli.Server("--wheels", self.make_wheels())
        self.addCleanup(server.stop)
        cell = server.call("POST", "/v1/run", {"code": "%pip install -q tiny-retort\nimport tiny_retort\ntiny_retort.answer"})
        self.assertEqual(cli.result(cell), "42", cell)


class Guests(Case):
    """Nothing of it can be changed, and nothing else is seen."""

    def test_read_only(self):
        wheels = self.make_wheels()
        self.write("neighbour.txt", "private")
        code = ("import os\nplace = '/opt/retort/wheels'\n"
                "for act in (lambda: open(place + '/x', 'w'), lambda: os.unlink(place + '/' + os.listdir(place)[0]),\n"
                "            lambda: open(place + '/' + os.listdir(place)[0], 'r+'), lambda: os.mkdir(place + '/d'),\n"
                "            lambda: os.rename(place, '/opt/retort/w'), lambda: os.chmod(place, 0o777),\n"
                "            lambda: os.utime(place), lambda: os.symlink('/etc', place + '/l')):\n"
                "    try: act(); print('done')\n"
                "    except OSError as e: print(e.errno)\n"
                "line = next(l for l in open('/proc/self/mountinfo') if f' {place} ' in l)\n"
                "print(sorted(line.split()[5].split(',')), os.path.exists(place + '/../neighbour.txt'))")
        for user in (None, cli.NOBODY):
            with self.subTest(user=user):
                before = sorted(os.listdir(wheels)), os.stat(wheels)
                done = cli.run("run", "--wheels", wheels, "-c", code, user=user)
                self.assertStatus(done, 0)
                *acts, mount = done.out.splitlines()
                self.assertEqual(set(acts) - {"30", "1", "13", "16", "18"}, set(), done.out)  # EROFS, EPERM, EACCES, …
                self.assertEqual(mount, "['noatime', 'nodev', 'nosuid', 'ro'] False")
                self.assertEqual((sorted(os.listdir(wheels)), os.stat(wheels).st_mtime_ns, os.stat(wheels).st_mode),
                                 (before[0], before[1].st_mtime_ns, before[1].st_mode))

    def test_links_in_it_lead_nowhere(self):
        wheels = self.make_wheels()
        secret = self.write("secret.txt", "private")
        os.symlink(secret, os.path.join(wheels, "link"))
        os.symlink("../secret.txt", os.path.join(wheels, "relative"))
        done = cli.run("run", "--wheels", wheels, "-c", "import os\nfor n in ('link', 'relative'):\n"
                       "    print(os.path.exists('/opt/retort/wheels/' + n))")
        self.assertEqual(done.out, "False\nFalse\n", done)

    def test_nothing_where_there_are_none(self):
        done = cli.run("run", "-c", "import os; print(os.path.exists('/opt/retort/wheels'), os.environ.get('PIP_FIND_LINKS'))")
        self.assertEqual(done.out, "False None\n", done)


class Mistakes(Case):
    def test_too_much_is_not_shown(self):
        os.symlink("/etc", self.path("alias"))
        for place in ("/", "/etc", "/root", "/home", "/tmp", "/proc/self", self.path("alias")):
            with self.subTest(place):
                done = cli.run("run", "--wheels", place, "-c", "1")
                self.assertStatus(done, 2)
                self.assertRegex(done.err, "wheels: .*cannot be shown")

    def test_what_is_no_directory(self):
        for place, says in (("/nowhere/at/all", "cannot see"), (self.write("file", "x"), "not a directory")):
            done = cli.run("run", "--wheels", place, "-c", "1")
            self.assertStatus(done, 2)
            self.assertRegex(done.err, f"wheels: .*{says}")

    def test_what_only_root_may_read(self):
        if os.geteuid() != 0:
            self.skipTest("only root has boxes with another uid")
        wheels = self.make_wheels()
        os.chmod(wheels, 0o700)
        done = cli.run("run", "--wheels", wheels, "-c", "1")
        self.assertStatus(done, 2)
        self.assertIn("chmod -R a+rX", done.err)

    def test_in_a_file(self):
        self.write("config/retort/environments/own.conf", "python = /usr/bin/python3\nwheels = here\n")
        done = cli.run("run", "--environment", "own", "-c", "1", env={"XDG_CONFIG_HOME": self.path("config")})
        self.assertStatus(done, 2)
        self.assertRegex(done.err, r"own\.conf:2: .*absolute")

    def test_no_box_where_it_cannot_be_shown(self):
        done = cli.run("run", "--wheels", self.make_wheels(), "-c", "print(1)", env={"RETORT_FAULT": "keeper-root"})
        self.assertStatus(done, 125)
        self.assertEqual(done.out, "")
        self.assertIn("step keeper-root", done.err)

    def test_on_a_server(self):
        done = cli.run("run", "--server", "http://127.0.0.1:1/?token=x", "--wheels", "/usr/share", "-c", "1")
        self.assertStatus(done, 2)
        self.assertIn("--wheels is for boxes on this host", done.err)


class Without(Case):
    """It fails soon, and says why."""

    def test_why(self):
        with cli.Repl() as repl:
            for code in ("!pip install -q polars", "%pip install polars", "%%bash\npip install polars",
                         "!python -m pip install 'polars>=1'"):
                with self.subTest(code):
                    cell = repl.cell(code)
                    said = cli.text(cell, "stderr")
                    self.assertIn("There is no network here, so pip can install nothing", said)
                    self.assertIn("polars is not installed here, and there is no network to install it from. Instead use "
                                  "pandas.", said)
                    self.assertNotIn("Retrying", said)
            for code in ("!false", "!pip list --nonsense 2>/dev/null", "!echo pip installed; false"):
                self.assertEqual(cli.text(repl.cell(code), "stderr"), "")
            cell = repl.cell("!pip install numpy")
            self.assertIn("Requirement already satisfied: numpy", cli.text(cell))
            self.assertEqual(cli.text(cell, "stderr"), "")

    def test_what_there_is_instead(self):
        with cli.Repl("--wheels", self.make_wheels()) as repl:
            said = cli.text(repl.cell("!pip install nothing-of-this-name"), "stderr")
            self.assertIn("pip installs only what the operator has put there (tiny-flask, tiny-retort).", said)
            self.assertEqual(repl.cell("import polars")["error"]["value"].partition("\n")[0], "No module named 'polars'")

    def test_a_wheel_of_a_known_name(self):
        name, data = wheel("polars", "x = 1\n")
        self.write(f"wheels/{name}", data)
        done = cli.run("run", "--wheels", self.path("wheels"), "-c", "import polars")
        self.assertIn("polars is not installed yet: %pip install polars does it", done.err)
