"""retort run -f and -o: what goes in, what comes out, and what a hostile program makes of it."""
import os
import stat

import cli

PICTURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\n"


class Uploads(cli.Case):
    def test_by_base_name(self):
        path = self.write("deep/down/a b.csv", "x,y\n1,2\n")
        done = cli.run("run", "-f", path, "-c", "print(open('/mnt/data/a b.csv').read())")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "x,y\n1,2\n\n")

    def test_under_another_name(self):
        path = self.write("a.csv", "1")
        done = cli.run("run", "-f", f"other.csv={path}", "-f", f"sub/dir/c.csv={path}", "-c",
                       "import os\nprint(sorted(os.listdir()), os.listdir('sub/dir'))")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "['other.csv', 'sub'] ['c.csv']\n")

    def test_a_file_with_an_equals_sign(self):
        self.write("a=b.csv", "1")
        done = cli.run("run", "-f", "a=b.csv", "-c", "import os; print(os.listdir())", cwd=self.dir)
        self.assertEqual(done.out, "['a=b.csv']\n")

    def test_binary_and_large(self):
        data = os.urandom(5 << 20)
        path = self.write("r.bin", data)
        done = cli.run("run", "-f", path, "-c", "import hashlib\n"
                       "print(hashlib.sha256(open('r.bin', 'rb').read()).hexdigest())")
        import hashlib
        self.assertEqual(done.out.strip(), hashlib.sha256(data).hexdigest())

    def test_may_be_changed_inside_and_stays_outside(self):
        path = self.write("a.csv", "1")
        self.assertStatus(cli.run("run", "-f", path, "-c", "open('a.csv', 'w').write('2')"), 0)
        self.assertEqual(self.read("a.csv"), b"1")

    def test_many(self):
        args = []
        for i in range(50):
            args += ["-f", self.write(f"{i}.txt", str(i))]
        done = cli.run("run", *args, "-c",
                       "import glob; print(sum(int(open(f).read()) for f in glob.glob('*.txt')))")
        self.assertEqual(done.out, f"{sum(range(50))}\n")


class Results(cli.Case):
    def out(self, code, *args, status=0):
        done = cli.run("run", "-o", self.path("out"), *args, "-c", code)
        self.assertStatus(done, status)
        return done

    def tree(self):
        found = []
        for at, dirs, files in os.walk(self.path("out")):
            found += [os.path.relpath(os.path.join(at, f), self.path("out")) for f in files]
        return sorted(found)

    def test_new_and_changed_only(self):
        args = []
        for name in ("same.txt", "changed.txt", "deleted.txt"):
            args += ["-f", self.write(name, "before")]
        done = self.out("import os\nopen('changed.txt', 'a').write(' and after')\n"
                        "os.remove('deleted.txt')\nos.makedirs('a/b')\n"
                        "open('a/b/new.txt', 'w').write('new')\nopen('same.txt').read()", *args)
        self.assertEqual(self.tree(), ["a/b/new.txt", "changed.txt"])
        self.assertEqual(self.read("out/changed.txt"), b"before and after")
        self.assertIn(f"retort: wrote {self.path('out')}/a/b/new.txt (3 B)\n", done.err)
        self.assertNotIn("not copied", done.err)

    def test_modes(self):
        self.out("import os\nopen('x', 'w').close(); os.chmod('x', 0o777)")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("out/x")).st_mode), 0o644)

    def test_replaces_an_older_file(self):
        self.write("out/x", "old")
        self.out("open('x', 'w').write('new')")
        self.assertEqual(self.read("out/x"), b"new")

    def test_also_after_a_crash_and_a_time_limit(self):
        self.out("open('a', 'w').write('1')\nimport os; os.abort()", status=1)
        self.out("open('b', 'w').write('2')\nwhile True: pass", "--timeout", "1", status=124)
        self.out("open('c', 'w').write('3')\n1/0", status=1)
        self.assertEqual(self.tree(), ["a", "b", "c"])

    def test_makes_the_directory(self):
        cli.run("run", "-o", self.path("p/q/r/"), "-c", "open('x', 'w').close()")
        self.assertEqual(os.listdir(self.path("p/q/r")), ["x"])

    def test_large(self):
        self.out("open('big', 'wb').write(b'x' * (100 << 20))")
        self.assertEqual(os.path.getsize(self.path("out/big")), 100 << 20)

    def test_many(self):
        self.out("for i in range(1500): open(f'{i}.txt', 'w').write(str(i))")
        self.assertEqual(len(self.tree()), 1500)

    def test_quiet_with_json(self):
        done = self.out("open('x', 'w').close()", "--json")
        self.assertEqual(done.err, "")
        self.assertEqual(self.tree(), ["x"])


class Figures(cli.Case):
    def test_saved_and_never_replaced(self):
        self.write("out/figure-1.png", "mine")
        done = cli.run("run", "-o", self.path("out"), "-c", PICTURE + PICTURE)
        self.assertStatus(done, 0)
        self.assertEqual(self.read("out/figure-1.png"), b"mine")
        for n in (2, 3):
            self.assertTrue(self.read(f"out/figure-{n}.png").startswith(b"\x89PNG"))
        self.assertRegex(done.err, r"retort: figure 1: image/png, \d+\.\d kB, "
                                   rf"saved as {self.path('out')}/figure-2.png\n")
        self.assertNotIn("<Figure", done.out)

    def test_hint_without_a_directory(self):
        done = cli.run("run", "-c", PICTURE)
        self.assertRegex(done.err, r"^retort: figure 1: image/png, \d+\.\d kB "
                                   r"\(use -o DIR to keep it\)\n$")

    def test_a_forged_type_makes_no_name(self):
        done = cli.run("run", "-o", self.path("out"), "-c",
                       "from IPython.display import display\n"
                       "display({'image/../../x': 'eA==', 'text/plain': 'y'}, raw=True)\n"
                       "display({'image/x\\x1b[2J': 'eA=='}, raw=True)")
        self.assertStatus(done, 0)
        self.assertEqual(set(os.listdir(self.path("out"))) - {"figure-2.image"}, {"figure-1.image"})
        self.assertEqual(sorted(os.listdir(self.dir)), ["out"])
        self.assertNotIn("\x1b", done.err)


class Hostile(cli.Case):
    """The names and files of a program that means harm. The directory's neighbour stays as it is."""

    def setUp(self):
        super().setUp()
        self.write("victim/secret", "untouched")

    def tearDown(self):
        self.assertEqual(self.read("victim/secret"), b"untouched")
        self.assertEqual(os.listdir(self.path("victim")), ["secret"])
        left = [f for _, _, files in os.walk(self.dir) for f in files if f.startswith(".retort-")]
        self.assertEqual(left, [])

    def out(self, code, *args):
        return cli.run("run", "-o", self.path("out"), *args, "-c", code)

    def test_symlinks_stay_inside(self):
        done = self.out("import os\nos.symlink('/etc/passwd', 'a')\nos.symlink('/', 'root')\n"
                        "os.symlink('real', 'b')\nopen('real', 'w').write('r')")
        self.assertEqual(os.listdir(self.path("out")), ["real"], f"{done}")

    def test_a_fifo_does_not_hang(self):
        done = self.out("import os\nos.mkfifo('pipe')\nopen('real', 'w').write('r')")
        self.assertEqual(os.listdir(self.path("out")), ["real"], f"{done}")

    def test_a_file_swapped_for_a_symlink_by_a_lingering_child(self):
        done = self.out("import os, subprocess, sys\nopen('x', 'w').write('mine')\n"
                        "subprocess.Popen([sys.executable, '-c', '''import os\nwhile True:\n"
                        " os.symlink(\"/etc/passwd\", \"t\"); os.rename(\"t\", \"x\")\n"
                        " open(\"t\", \"w\").write(\"mine\"); os.rename(\"t\", \"x\")'''])")
        self.assertIn(done.status, (0, 125), f"{done}")
        for name in os.listdir(self.path("out")):
            self.assertFalse(os.path.islink(self.path("out", name)))
            self.assertIn(self.read("out", name), (b"mine", b""))

    def test_names_that_would_command_a_terminal(self):
        done = self.out(r"""for n in ('a\nb', '\x1b[2J', '\x9b2J', '-rf', 'a b', '"', '漢'):
    open(n, 'w').close()""")
        self.assertStatus(done, 0)
        self.assertEqual(set(os.listdir(self.path("out"))),
                         {"a\nb", "\x1b[2J", "\x9b2J", "-rf", "a b", '"', "漢"})
        self.assertNotRegex(done.err, "[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]")
        self.assertEqual(len(done.err.splitlines()), 7)
        self.assertIn("漢", done.err)

    def test_names_that_are_not_text(self):
        done = self.out("open(b'\\xff\\xfe', 'w').close()")
        self.assertStatus(done, 0)
        self.assertEqual(os.listdir(os.fsencode(self.path("out"))), [b"\xff\xfe"])

    def test_long_names(self):
        done = self.out("import os\nos.makedirs('d' * 255 + '/' + 'e' * 255)\n"
                        "open('d' * 255 + '/' + 'e' * 255 + '/' + 'f' * 255, 'w').write('x')")
        self.assertStatus(done, 0)
        self.assertEqual(self.read("out", "d" * 255, "e" * 255, "f" * 255), b"x")

    def test_a_symlinked_directory_in_the_way(self):
        os.mkdir(self.path("out"))
        os.symlink(self.path("victim"), self.path("out/sub"))
        done = self.out("import os\nos.mkdir('sub')\nopen('sub/secret', 'w').write('gotcha')\n"
                        "open('sub/new', 'w').write('gotcha')")
        self.assertStatus(done, 125)
        self.assertIn("not copied: sub/secret", done.err)

    def test_a_symlink_in_the_way_is_replaced_not_followed(self):
        os.mkdir(self.path("out"))
        os.symlink(self.path("victim/secret"), self.path("out/x"))
        self.assertStatus(self.out("open('x', 'w').write('gotcha')"), 0)
        self.assertFalse(os.path.islink(self.path("out/x")))
        self.assertEqual(self.read("out/x"), b"gotcha")

    def test_figures_follow_no_symlink(self):
        os.mkdir(self.path("out"))
        os.symlink(self.path("victim/figure"), self.path("out/figure-1.png"))
        self.assertStatus(self.out(PICTURE), 0)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["figure-1.png", "figure-2.png"])

    def test_a_directory_in_the_way(self):
        os.makedirs(self.path("out/x"))
        done = self.out("open('x', 'w').write('1')\nopen('y', 'w').write('2')")
        self.assertStatus(done, 125)
        self.assertIn("not copied: x: ", done.err)
        self.assertEqual(self.read("out/y"), b"2")

    def test_hidden_names_do_not_enter_a_directory_in_use(self):
        self.write("out/notes.txt", "mine")
        done = self.out("import os\nos.makedirs('.git/hooks')\nopen('.git/config', 'w').close()\n"
                        "open('.bashrc', 'w').close()\nos.mkdir('a')\nopen('a/.x', 'w').close()\n"
                        "open('shown', 'w').close()")
        self.assertStatus(done, 125)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["notes.txt", "shown"])
        self.assertIn("not copied: .bashrc: hidden names", done.err)

    def test_hidden_names_enter_a_fresh_one(self):
        done = self.out("open('.gitignore', 'w').write('x')")
        self.assertStatus(done, 0)
        self.assertEqual(self.read("out/.gitignore"), b"x")

    def test_a_sparse_file_does_not_fill_the_disk(self):
        done = self.out("open('huge', 'wb').truncate(1 << 42)\nopen('ok', 'w').write('x')")
        self.assertStatus(done, 0)  # the guest's doing
        self.assertIn("not copied: huge: ", done.err)
        self.assertEqual(os.listdir(self.path("out")), ["ok"])

    def test_many_sparse_files_do_not_either(self):
        done = self.out("for i in range(20): open(f'{i:02}', 'wb').truncate(1 << 20)", "--disk", "5m")
        self.assertStatus(done, 0)  # the guest's doing
        size = sum(os.path.getsize(self.path("out", n)) for n in os.listdir(self.path("out")))
        self.assertLessEqual(size, 5 << 20)
