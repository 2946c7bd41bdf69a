"""Words on the command line: help, and what is said about mistakes."""
import os
import re

import cli

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../man")


def verbs():
    return re.findall(r"^  retort ([a-z]+) ", cli.run("--help").out, re.M)


def manual(verb):
    """The options that its page has."""
    with open(os.path.join(MANUAL, f"retort-{'ask' if verb == 'chat' else verb}.1")) as f:
        return set(re.findall(r"Fl \\?-([a-z][a-z-]+)", f.read()))


class Help(cli.Case):
    def test_each_help_is_one_screen(self):
        self.assertIn("mcp", verbs())
        for args in (["--help"], ["help", "run"], ["run", "-h"], *[[verb, "--help"] for verb in verbs()]):
            with self.subTest(args=args):
                done = cli.run(*args)
                self.assertStatus(done, 0)
                self.assertEqual(done.err, "")
                lines = done.out.splitlines()
                self.assertLessEqual(len(lines), 24)
                self.assertLessEqual(max(map(len, lines)), 80)
                self.assertTrue(lines[0].startswith("usage: retort"))

    def test_help_names_every_limit_with_its_default(self):
        text = cli.run("run", "--help").out
        for name, default in (("timeout", "60"), ("cpu", "none"), ("memory", "1g"),
                              ("disk", "512m"), ("files", "10000"), ("pids", "64"),
                              ("output", "1m"), ("cpus", "1")):
            self.assertRegex(text, rf"--{name} .*\[{default}\]")

    def test_what_help_names_is_in_the_manual(self):
        """On the verb's own page, or on that of run, to which others refer."""
        for verb in verbs():
            with self.subTest(verb=verb):
                named = set(re.findall(r"--([a-z][a-z-]+)", cli.run(verb, "--help").out))
                self.assertLessEqual(named - {"help"}, manual(verb) | manual("run"))

    def test_version(self):
        done = cli.run("--version")
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"^retort \d+\.\d+\.\d+\n$")

    def test_no_verb_is_wrong_usage(self):
        done = cli.run()
        self.assertStatus(done, 2)
        self.assertEqual(done.out, "")
        self.assertIn("usage: retort", done.err)


class Mistakes(cli.Case):
    def wrong(self, *args, says, input=b""):
        done = cli.run(*args, input=input, cwd=self.dir)
        self.assertStatus(done, 2)
        self.assertEqual(done.out, "")
        self.assertRegex(done.err, says)
        self.assertRegex(done.err, "^retort: ")

    def test_verbs(self):
        self.wrong("rnu", says='did you mean "run"')
        self.wrong("doc", says='did you mean "doctor"')
        self.wrong("x.py", says='did you mean "run x.py"')
        self.wrong("xyzzy", says='no verb "xyzzy"')
        self.wrong("-c", "1", says="a verb comes first")

    def test_options(self):
        self.wrong("run", "--memroy", "1g", says="did you mean --memory")
        self.wrong("run", "-z", says="unknown option -z")
        self.wrong("run", "--memory", says="--memory needs a value")
        self.wrong("run", "--json=1", "-c", "1", says="--json takes no value")
        self.wrong("repl", "x.py", says="retort run x.py")
        self.wrong("doctor", "x", says="not understood")
        self.wrong("doctor", "--memory", "1g", says="unknown option --memory")
        self.wrong("serve", "--json", says="unknown option --json")
        self.wrong("token", "revoke", "x", "--json", says="takes no --json")

    def test_checkpoints(self):
        for wrong in ("x", "-1", "33", "1.5", "none", ""):
            with self.subTest(wrong=wrong):
                self.wrong("repl", "--checkpoints", wrong, says="--checkpoints: .*0 to 32")
        self.wrong("run", "--checkpoints", "1", says="unknown option --checkpoints")

    def test_limits(self):
        for name in ("timeout", "cpu", "memory", "disk", "files", "pids", "output", "cpus"):
            with self.subTest(name=name):
                self.wrong("run", f"--{name}", "0", "-c", "1", says=f'{name}: 0 .*"none"')
                self.wrong("run", f"--{name}", "x", "-c", "1", says=f"{name}: .*is not")
                self.wrong("run", f"--{name}", "-1", "-c", "1", says=f"{name}: .*is not")

    def test_programs(self):
        self.write("latin.py", b"# caf\xe9\n")
        self.write("long.py", b"#" * ((16 << 20) + 1))
        self.wrong("run", "-c", "1", "x.py", says="two programs")
        self.wrong("run", "a.py", "b.py", says="one too many")
        self.wrong("run", "-c", "1", "-c", "2", says="once")
        self.wrong("run", "missing.py", says="cannot open missing.py: No such file")
        self.wrong("run", ".", says="is a directory")
        self.wrong("run", "latin.py", says="not UTF-8")
        self.wrong("run", "long.py", says="16 MiB")
        self.wrong("run", "-", input=b"#" * ((16 << 20) + 1), says="16 MiB")

    def test_files(self):
        os.mkdir(self.path("sub"))
        self.write("a.csv", "1")
        self.write("sub/a.csv", "2")
        self.wrong("run", "-f", "missing", "-c", "1", says="cannot open missing")
        self.wrong("run", "-f", "sub", "-c", "1", says="sub is a directory")
        self.wrong("run", "-f", "a.csv", "-f", "sub/a.csv", "-c", "1", says='called "a.csv"')
        for name in ("../x", "/x", "a/../b", "a//b", ".", "..", "a/..", ""):
            with self.subTest(name=name):
                self.wrong("run", "-f", f"{name}=a.csv", "-c", "1", says="cannot be the name")

    def test_results_directory(self):
        self.write("file", "")
        self.wrong("run", "-o", "file", "-c", "1", says="file")
        self.wrong("run", "-o", "file/below", "-c", "1", says="file/below")
        self.wrong("run", "-o", "", "-c", "1", says="empty name")

    def test_environments(self):
        self.wrong("run", "--environment", "nowhere", "-c", "1", says='no environment "nowhere"')
        self.wrong("run", "--environment", "./nowhere", "-c", "1", says="no environment at")
        self.wrong("run", "--environment", ".", "-c", "1", says="neither a name nor a path")
        self.wrong("run", "--environment", "./", "-c", "1", says="no bin/python3")
        self.wrong("run", "--environment", "/", "-c", "1", says="as a whole")


class NoProgram(cli.Case):
    def test_at_a_terminal_it_is_wrong_usage(self):
        with cli.Terminal("run") as t:
            t.expect("which program")
            self.assertEqual(t.wait(), 2)
