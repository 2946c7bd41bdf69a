"""retort chat: a conversation, its transcript, and going on after a crash."""
import json
import os
import signal
import subprocess
import time

import asking
import cli


class Talk(asking.Case):
    def test_variables_and_what_was_said_stay(self):
        script = [{"calls": ["x = 41"]}, {"text": "set"},
                  {"expect_anywhere": "set", "calls": ["print('x is', x + 1)"]}, {"expect": "x is 42", "text": "It is 42."}]
        done = self.ask(script, verb="chat", input="Set x.\nAnd one more?\n")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "set\nIt is 42.\n")

    def test_a_file_in_between(self):
        path = self.write("late.csv", "h\n1\n")
        script = [{"text": "hello"}, {"calls": ["print(open('late.csv').read())"]}, {"expect": "h\n1", "text": "seen"}]
        done = self.ask(script, verb="chat", input=f"Hello\n/file {path}\nRead late.csv\n/file /no/such\n")
        self.assertStatus(done, 0)
        self.assertIn("/no/such", done.err)
        told = [asking.said(r) for r in done.server.requests]
        self.assertNotIn("late.csv, 4 B", told[0])
        self.assertIn("late.csv, 4 B\n  begins:\nh\n1\n", told[1])

    def test_a_model_that_fails_once_does_not_end_it(self):
        script = [{"status": 400, "message": "no"}, {"text": "fine"}]
        done = self.ask(script, verb="chat", input="One\nTwo\n")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "fine\n")

    def test_usable_after_an_answer_was_stopped(self):
        s = self.server([{"calls": [asking.DEAF]}, {"expect_anywhere": "stopped by the user", "text": "still here"}])
        asking.stall(s)
        p = cli.start("chat", *asking.arguments(s, "chat"), "--key-file", self.path("key"), "--json",
                      env=self.environment(), stdin=subprocess.PIPE)
        p.stdin.write(b"Go\n")
        p.stdin.flush()
        cli.read_until(p.stdout, b"going\\n")
        p.send_signal(signal.SIGINT)
        cli.read_until(p.stdout, b"heard\\n")
        p.send_signal(signal.SIGINT)
        cli.read_until(p.stdout, b'"stopped"')
        p.stdin.write(b"Still there?\n")
        p.stdin.close()
        p.stdin = None
        done = cli.finish(p)
        self.assertIn("still here", done.out)
        self.assertEqual(s.faults, [])


class Transcript(asking.Case):
    def test_is_written_as_it_goes_on_and_for_nobody_else(self):
        self.ask([{"calls": ["print('hello')"]}, {"text": "ok"}])
        [path] = self.transcripts()
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(os.path.dirname(path)).st_mode & 0o777, 0o700)
        with open(path) as f:
            lines = [json.loads(line) for line in f]
        self.assertEqual([m.get("role") for m in lines], [None, "user", "model", "results", "model"])
        self.assertNotIn(asking.KEY, json.dumps(lines))

    def test_going_on_after_a_crash(self):
        data = self.write("in.csv", "v\n5\n")
        s = self.server([{"calls": ["x = int(open('in.csv').read().split()[1])"]}, {"calls": ["1/0"]},
                         {"text": "never", "hang": 100}])
        p = cli.start("chat", *asking.arguments(s, "chat"), "--key-file", self.path("key"), "-f", data,
                      env=self.environment(), stdin=subprocess.PIPE)
        p.stdin.write(b"What is x?\n")
        p.stdin.flush()
        deadline = time.monotonic() + 60
        while len(s.requests) < 3:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        p.kill()
        cli.finish(p)
        [path] = self.transcripts()
        with open(path, "a") as f:
            f.write('{"role":"model","te')  # it died while it wrote
        script = [{"expect_anywhere": "What is x", "calls": ["print('x is', x)"]}, {"expect": "x is 5", "text": "x is 5."},
                  {"expect": "Thanks", "text": "You're welcome."}]
        done = self.ask(script, "--continue", verb="chat", input="Thanks\n")
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "x is 5.\nYou're welcome.\n")
        self.assertEqual(self.transcripts(), [path])

    def test_nothing_to_go_on_with(self):
        done = self.ask([], "--continue", verb="chat")
        self.assertStatus(done, 2)
        done = self.ask([], f"--continue={self.write('x.jsonl', 'no')}", verb="chat")
        self.assertStatus(done, 2)

    def test_one_at_a_time(self):
        s = self.server([{"text": "a"}])
        p = cli.start("chat", *asking.arguments(s, "chat"), "--key-file", self.path("key"), env=self.environment(),
                      stdin=subprocess.PIPE)
        p.stdin.write(b"Hello\n")
        p.stdin.flush()
        cli.read_until(p.stdout, b"a\n")
        done = self.ask([], "--continue", verb="chat")
        self.assertStatus(done, 2)
        self.assertIn("another", done.err)
        p.stdin.close()
        p.stdin = None
        cli.finish(p)
