"""retort verify: a notebook's cells once more, and its answer's numbers."""
import hashlib
import json
import os
import signal
import time

import cli


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def result(text, **forms):
    return {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": text, **forms}}


def error(name, value):
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": []}


def code(source, *outputs, n=1, **metadata):
    return {"cell_type": "code", "metadata": metadata, "execution_count": n, "source": source, "outputs": list(outputs)}


def text(source, role=None):
    return {"cell_type": "markdown", "metadata": {"retort": {"role": role}} if role else {}, "source": source}


def notebook(*cells, **retort):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"retort": retort} if retort else {},
                       "cells": list(cells)})


class Case(cli.Case):
    def verify(self, book, *args):
        return cli.run("verify", *args, self.write("a.ipynb", book))

    def report(self, *cells, status=None, args=(), **retort):
        done = self.verify(notebook(*cells, **retort), "--json", *args)
        self.assertIn(done.status, (0, 1), done)
        self.assertEqual(done.status, 0 if done.json["verified"] else 1)
        if status is not None:
            self.assertStatus(done, status)
        return done.json

    def statuses(self, report):
        return [c["status"] for c in report["cells"]]


class Cells(Case):
    def test_the_same(self):
        found = self.report(code("x = 20\nprint('a')", stream("a\n")), code("x + 1", result("21")),
                            code("1/0", error("ZeroDivisionError", "division by zero")),
                            code("import sys; print('e', file=sys.stderr)", stream("e\n", "stderr")),
                            code("object()", result("<object at 0x7f0000000000>")), status=0)
        self.assertEqual(self.statuses(found), ["same"] * 5)
        self.assertEqual((found["same"], found["unfounded"], found["files"]), (5, [], []))

    def test_differences(self):
        found = self.report(code("print('a')\nprint('b')", stream("a\nc\n")), code("7", result("8")),
                            code("x", error("KeyError", "'x'")), code("print(1)"), status=1)
        self.assertEqual(self.statuses(found), ["differs"] * 4)
        self.assertEqual([c["differences"][0] for c in found["cells"]],
                         [{"what": "stdout", "line": 2, "recorded": "c", "now": "b"},
                          {"what": "text/plain", "line": 1, "recorded": "8", "now": "7"},
                          {"what": "error", "line": 1, "recorded": "KeyError: 'x'",
                           "now": "NameError: name 'x' is not defined"},
                          {"what": "stdout", "line": 1, "recorded": "", "now": "1"}])

    def test_undone_and_unrecorded_cells(self):
        found = self.report(code("x = 1"), code("x = 2; 1/0", retort={"undone": True}),
                            code("print(x)", n=None), code("  \n", n=None), code("x", result("1")), status=0)
        self.assertEqual(self.statuses(found), ["same", "undone", "unrecorded", "same"])
        self.assertEqual([c["cell"] for c in found["cells"]], [1, 2, 3, 5])

    def test_a_crash_is_compared_too(self):
        left = error("Crashed", "the interpreter left with status 3 (os._exit)")
        found = self.report(code("x = 1"), code("import os; os._exit(3)", left), code("x", result("1")), status=0)
        self.assertEqual(self.statuses(found), ["same"] * 3)

    def test_files_that_are_made(self):
        sha = hashlib.sha256(b"12").hexdigest()
        made = {"path": "a.txt", "change": "created", "size": 2, "sha256": sha}
        other = {"path": "b.txt", "change": "created", "size": 2, "sha256": "0" * 64}
        found = self.report(code("_ = open('a.txt', 'w').write('12')", retort={"files": [made]}),
                            code("_ = open('b.txt', 'w').write('12')", retort={"files": [other]}))
        self.assertEqual(self.statuses(found), ["same", "differs"])
        self.assertEqual(found["cells"][1]["differences"],
                         [{"what": "file b.txt", "recorded": "0" * 64, "now": sha}])

    def test_standard_input(self):
        done = cli.run("verify", "-", input=notebook(code("1", result("1"))))
        self.assertStatus(done, 0)
        self.assertEqual(done.out, "   1  same          1\n1 cell: 1 the same\n")


class Pictures(Case):
    PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, %d])\nplt.show()"

    def record(self, code_text):
        cell = cli.run("run", "--json", "-c", code_text).json
        return next(o["data"] for o in cell["outputs"] if o["type"] == "display")

    def test_charts(self):
        data = self.record(self.PLOT % 2)
        data = {t: json.loads(d) if t.endswith("+json") else d for t, d in data.items()}
        shown = {"output_type": "display_data", "metadata": {}, "data": data}
        jupyters = {**shown, "data": {t: d for t, d in data.items() if "retort" not in t}}
        found = self.report(code(self.PLOT % 2, shown), code(self.PLOT % 2, jupyters), code(self.PLOT % 3, shown),
                            code(self.PLOT % 3, jupyters))
        self.assertEqual(self.statuses(found), ["same", "same", "differs", "differs"])
        self.assertEqual([c["differences"][0]["what"] for c in found["cells"][2:]], ["chart", "picture"])


class RoundTrip(Case):
    def test_a_servers_notebook(self):
        server = cli.Server()
        self.addCleanup(server.stop)
        sid = server.call("POST", "/v1/sessions", {})["id"]
        for cell in ("import pandas as pd\nd = pd.DataFrame({'a': [1, 2.5], 'b': ['x', 'y']})\nd", "print(d.a.mean())",
                     "d.plot(y='a')", "d.to_csv('out.csv')", "d.z", "import warnings; warnings.warn('w')",
                     "d.style.format(precision=1)", "print('x' * 3000000)"):
            server.call("POST", f"/v1/sessions/{sid}/cells", {"code": cell})
        book = server.call("GET", f"/v1/sessions/{sid}/notebook")
        done = self.verify(json.dumps(book), "--json")
        self.assertEqual([c for c in done.json["cells"] if c["status"] != "same"], [])
        self.assertStatus(done, 0)


class Answers(Case):
    CELLS = (text("Is it more than 17?", "question"), code("print(2.16666)", stream("2.16666\n")),
             code("x = 1", retort={"undone": True}))

    def test_founded_and_unfounded(self):
        found = self.report(*self.CELLS, text("No: 2.17, and not 17.", "answer"), status=0)
        self.assertEqual(found["unfounded"], [])
        found = self.report(*self.CELLS, text("It is 2.17, 45 % of `99`.", "answer"), text("88"), status=1)
        self.assertEqual(found["unfounded"], ["45 %"])
        self.assertEqual(self.statuses(found), ["same", "undone"])

    def test_without_a_mark_it_is_the_last_text(self):
        found = self.report(text("# 77 things"), code("print(5)", stream("5\n")), text("It is 77 or 78."))
        self.assertEqual(found["unfounded"], ["78"])

    def test_undone_outputs_found_nothing(self):
        found = self.report(code("print(55)", stream("55\n"), retort={"undone": True}), text("It is 55.", "answer"))
        self.assertEqual(found["unfounded"], ["55"])

    def test_names_of_files(self):
        self.write("sales-2031.csv", "a")
        found = self.report(code("1", result("1")), text("In 2031.", "answer"), args=("-f", self.path("sales-2031.csv")))
        self.assertEqual(found["unfounded"], [])


class Files(Case):
    READ = code("print(open('a.csv').read())", stream("12\n"))

    def files(self, data=b"12"):
        return [{"name": "a.csv", "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}]

    def test_are_asked_for(self):
        done = self.verify(notebook(self.READ, files=self.files()))
        self.assertStatus(done, 2)
        self.assertEqual((done.out, done.err), ("", 'retort: verify: the notebook was made with the file "a.csv" '
                                                    "(2 B): give it as in -f a.csv\n"))

    def test_are_given(self):
        path = self.write("a.csv", "12")
        found = self.report(self.READ, files=self.files(), args=("-f", path), status=0)
        self.assertEqual(found["files"], [{"name": "a.csv", "status": "same"}])

    def test_are_others(self):
        path = self.write("b.csv", "12")
        done = self.verify(notebook(self.READ, files=self.files(b"13")), "-f", f"a.csv={path}")
        self.assertStatus(done, 1)
        self.assertIn('"a.csv" is not the file that the notebook was made with', done.err)


class Hostile(Case):
    def wrong(self, book, says):
        done = self.verify(book)
        self.assertStatus(done, 2)
        self.assertRegex(done.err, says)
        self.assertEqual(done.out, "")

    def test_what_is_no_notebook(self):
        self.wrong("", "not JSON")
        self.wrong("[" * 100000, "not JSON")
        self.wrong("{}", "nbformat")
        self.wrong('{"nbformat":3,"worksheets":[]}', "nbconvert")
        self.wrong('{"nbformat":4,"cells":[{"cell_type":"code","source":7}]}', "cell 1")
        self.wrong('{"nbformat":4,"cells":[' + "0," * 1500000 + "0]}", "more values")

    def test_wrong_types(self):
        found = self.report(code("1", 5, {}, [], {"output_type": 7}, {"output_type": "stream", "name": [], "text": {}},
                                 result({"a": 1}), {"output_type": "display_data", "data": []}, error(5, 6)),
                            {**code("1", result("1")), "metadata": {"retort": {"files": 5, "undone": "x"}}})
        self.assertEqual(len(found["cells"]), 2)

    def test_many_outputs(self):
        begin = time.monotonic()
        found = self.report(code("for i in range(100000): print(i)", *(stream(f"{i}\n") for i in range(100000))), status=0)
        self.assertEqual(self.statuses(found), ["same"])
        self.assertLess(time.monotonic() - begin, 60)

    def test_escapes_do_not_reach_the_terminal(self):
        evil = "\x1b]0;owned\x07\x1b[2J\u009b31m"
        book = notebook(code(f"{evil}\nprint('{evil}x')", stream(f"{evil}y\n")), code("1", error(evil, evil)),
                        code("print(1)", stream("2\n"), retort={"files": [{"path": evil, "change": evil}]}),
                        text(f"99{evil}", "answer"))
        with cli.Terminal("verify", self.write("a.ipynb", book)) as t:
            self.assertEqual(t.wait(), 1)
            self.assertNotIn(b"\x1b]", t.seen)
            self.assertNotIn(b"\x1b[2J", t.seen)
            self.assertNotIn(b"\xc2\x9b", t.seen)
            self.assertIn(b"in no output: 99", t.seen)

    def test_names_of_files_that_are_asked_for(self):
        self.wrong(notebook(files=[{"name": "a\x1b[31m", "size": 1, "sha256": "0" * 64}]), r'"a\?\[31m"')

    def test_an_endless_cell_ends_by_its_limit(self):
        found = self.report(code("while True: pass", error("KeyboardInterrupt", "")), code("1", result("1")),
                            args=("--timeout", "1"))
        self.assertEqual(self.statuses(found)[1], "same")

    def test_ctrl_c(self):
        process = cli.start("verify", self.write("a.ipynb", notebook(
            code("print(1)", stream("1\n")), code("import time; time.sleep(100)"))))
        cli.read_until(process.stdout, b"same")
        process.send_signal(signal.SIGINT)
        self.assertStatus(cli.finish(process), 130)


class Usage(Case):
    def test_words(self):
        for args, says in (((), "which notebook"), (("a", "b"), "one too many"), (("/nonexistent",), "cannot open"),
                           (("--environment", "nowhere", os.devnull), "not JSON"), (("-f", "missing", "x"), "missing|open")):
            with self.subTest(args=args):
                done = cli.run("verify", *args)
                self.assertStatus(done, 2)
                self.assertRegex(done.err, says)
