"""ask and chat at a terminal, as a person sees them."""
import re

import asking
import cli
from asking import MISTAKE

DRAW = {"text": "A line.", "calls": ["import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('line.png')\nplt.show()"]}
COLOUR = re.compile(rb"\x1b\[[0-9;]*[1-9][0-9;]*m")


class Case(asking.Case):
    def open(self, script, verb, *args, columns=80, environment={}):
        self.model = self.server(script)
        env = self.environment(**{"TERM": "xterm-256color", "NO_COLOR": None, "COLORTERM": None, "TMUX": None,
                                  "TERM_PROGRAM": None, "KITTY_WINDOW_ID": None, **environment})
        t = cli.Terminal(verb, *asking.arguments(self.model, "chat"), "--key-file", self.path("key"), *args, env=env,
                         columns=columns)
        self.addCleanup(t.__exit__)
        return t

    def asked(self, script, *args, **options):
        t = self.open(script, "ask", *args, "What?", **options)
        t.status = t.wait()
        self.assertEqual(self.model.faults, [])
        return t


class Shown(Case):
    def test_code_output_errors_files_and_markdown(self):
        script = [MISTAKE, {**DRAW, "slow": 20}, {"text": "# Title\n\n| a | b |\n|---|--:|\n| x | 10 |\n\nIt is **6**.\n"}]
        t = self.asked(script)
        self.assertEqual(t.status, 0)
        for wanted in ("── python ─", r"\n  values = \[1, 2, 3\]", "NameError: name 'valeus' is not defined",
                       "undone: variables and files are what they were before", r"wrote line.png  [\d.]+ kB", "▀|▄|█|▌|▐",
                       r"│ x +│ +10 │", "thinking", "running"):
            self.assertRegex(t.plain, wanted)
        self.assertIn("\nIt is 6.\n", t.plain)
        self.assertIn(b"\x1b[0;1m6\x1b[0m", t.seen)
        self.assertRegex(t.seen, rb"\x1b\[0;3\dm1\x1b")  # a number of the code, in its colour

    def test_without_colours(self):
        t = self.asked([MISTAKE, {"text": "It is **6**."}], environment={"NO_COLOR": "1"})
        self.assertEqual(COLOUR.findall(t.seen), [])
        self.assertIn("It is **6**.", t.plain)  # what is bold is so in other words

    def test_on_a_terminal_that_can_nothing(self):
        t = self.asked([DRAW, {"text": "It is **6**."}], environment={"TERM": "dumb"})
        self.assertNotIn(b"\x1b", t.seen)
        self.assertRegex(t.plain, r"picture: image/png, [\d.]+ kB")

    def test_pictures_as_the_terminal_has_them(self):
        for environment, begins in (({"TERM": "xterm-kitty"}, b"\x1b_G"), ({"TERM": "foot"}, b"\x1bP"),
                                    ({"RETORT_PICTURES": "sixel"}, b"\x1bP"), ({"RETORT_PICTURES": "none"}, b"picture: ")):
            with self.subTest(environment):
                self.assertIn(begins, self.asked([DRAW, {"text": "ok"}], environment=environment).seen)

    def test_narrow(self):
        """No line is longer than the window, which would break it anywhere."""
        words = "many words that are to be wrapped where they end " * 3
        script = [{"text": words, "calls": [f"text = '{words}'\nprint(text)\nopen('{'n' * 60}', 'w').close()"]},
                  {"text": f"{words}\n\n| {words} | b |\n|---|---|\n| c | d |\n"}]
        t = self.asked(script, columns=34)
        shown = [line for line in t.plain.split("\n") if not re.search("thinking|writing|running", line)]
        self.assertLessEqual(max(map(len, shown)), 34)
        self.assertRegex(t.plain, r"\nmany words that are to be wrapped\nwhere they end")


class Stopped(Case):
    def test_ctrl_c_once_twice_and_on(self):
        """Once: the model hears of it. Twice: the answer ends, and the conversation goes on."""
        t = self.open([{"calls": ["import time\nprint('going', flush=True)\ntime.sleep(60)"]}, {"expect": "interrupted", "text": "Ok."},
                       {"calls": [asking.DEAF]}, {"expect_anywhere": "stopped by the user", "text": "Still here."}], "chat")
        asking.stall(self.model)
        t.expect("Ctrl-D leaves")
        t.expect("» ")
        t.line("first")
        t.expect("│ going")
        t.send("\x03")
        t.expect("interrupted")
        t.expect(r"Ok\.\s+» ")
        t.line("second")
        t.expect("│ going")
        t.send("\x03")
        t.expect("│ heard")
        t.send("\x03")
        t.expect("stopped by the user")
        t.expect("» ")
        t.line("third")
        t.expect(r"Still here\.\n\n» ")  # there is air around what is said
        t.send("\x04")
        self.assertEqual(t.wait(), 0)
        t.status = 0
        self.assertEqual(self.model.faults, [])
