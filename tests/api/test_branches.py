"""Sessions that split, and candidates that are tried."""
import os
import threading
import time

import api


def journal(session):
    return session.client.get(session.path + "/cells").json["data"]


class Fork(api.Case):
    def setUp(self):
        super().setUp()
        self.s = self.session()

    def fork(self, **body):
        answer = self.client.post(self.s.path + "/fork", **body)
        self.assertEqual(answer.status, 201, answer.json)
        return [api.Session(self.client, session["id"]) for session in answer.json["sessions"]]

    def test_it_begins_as_the_other_was(self):
        self.s.cell("x = [1, 2]; open('a.txt', 'w').write('hello')")
        branch, = self.fork()
        info = branch.info()
        self.assertEqual(info["parent"], {"id": self.s.id, "n": 1})
        self.assertIsNone(self.s.info()["parent"])
        cell = branch.cell("x, open('a.txt').read()")
        self.assertEqual((cell["n"], api.result(cell)), (2, "([1, 2], 'hello')"))

    def test_from_then_on_they_are_apart(self):
        self.s.cell("x = 1; open('a', 'w').write('one')")
        one, two = self.fork(count=2)
        one.cell("x = 'one'; open('a', 'w').write('by one'); open('b', 'w').write('b')")
        two.cell("x = 'two'; import os; os.unlink('a')")
        self.assertEqual(api.result(one.cell("import os; x, open('a').read(), sorted(os.listdir())")),
                         "('one', 'by one', ['a', 'b'])")
        self.assertEqual(api.result(two.cell("x, os.listdir()")), "('two', [])")
        self.assertEqual(api.result(self.s.cell("x, open('a').read()")), "(1, 'one')")
        self.assertEqual([len(journal(s)) for s in (self.s, one, two)], [2, 2, 2])

    def test_at_an_earlier_cell(self):
        self.s.cell("x = 1; open('a', 'w').write('one')")
        self.s.cell("x = 2; open('a', 'w').write('two')")
        self.s.cell("x")
        branch, = self.fork(at=1)
        self.assertEqual(branch.info()["parent"]["n"], 1)
        self.assertEqual(api.result(branch.cell("x, open('a').read()")), "(1, 'one')")
        answer = self.client.post(self.s.path + "/fork", at=50)
        self.assertError(answer, 409, "no_checkpoint")

    def test_at_a_cell_that_changed_nothing(self):
        """init hears of it when it is asked, and the question comes by another way."""
        for _ in range(5):
            self.s = self.session()
            for code in ("x = 1", "x", "x = 2", "x = 3"):
                self.s.cell(code)
            branch, = self.fork(at=2)
            self.assertEqual(api.result(branch.cell("x")), "1")
            self.s.delete()

    def test_what_its_guest_does_before_its_first_cell_is_told(self):
        self.s.cell("import os; open('a', 'w').close(); os.register_at_fork(after_in_child=lambda: os.path.exists('a') and os.unlink('a'))")
        branch, = self.fork()
        self.assertEqual([(f["path"], f["change"]) for f in branch.cell("1")["files"]], [("a", "deleted")])

    def test_files_that_were_uploaded_since(self):
        self.s.cell("x = 1")
        self.client.put(self.s.path + "/files/in.csv", b"a,b\n")
        branch, = self.fork()
        self.assertEqual(api.result(branch.cell("open('in.csv').read()")), "'a,b\\n'")

    def test_after_going_back(self):
        self.s.cell("x = 1")
        self.s.cell("x = 2")
        self.client.post(self.s.path + "/rollback", to=1)
        branch, = self.fork()
        self.assertEqual(api.result(branch.cell("x")), "1")

    def test_while_a_cell_runs(self):
        self.s.cell("x = 1")
        self.s.begin("x = 2; import time; time.sleep(4)")
        api.wait_until(lambda: self.s.info()["status"] == "busy")
        branch, = self.fork()
        self.assertEqual(api.result(branch.cell("x")), "1")

    def test_the_other_may_end_first(self):
        self.s.cell("x = 1; open('a', 'w').write('a')")
        branch, = self.fork()
        self.assertEqual(self.client.delete(self.s.path).status, 204)
        self.assertEqual(api.result(branch.cell("x, open('a').read()")), "(1, 'a')")

    def test_a_branch_of_a_branch(self):
        self.s.cell("x = 1")
        session = self.s
        for i in range(4):
            answer = self.client.post(session.path + "/fork")
            session = api.Session(self.client, answer.json["sessions"][0]["id"])
            self.assertEqual(session.cell("x += 1")["status"], "ok")
        self.assertEqual(api.result(session.cell("x")), "5")

    def test_they_run_at_the_same_time(self):
        self.s.cell("import time, os")
        branches = self.fork(count=4)
        # Each waits until it sees that all have begun: on one after the other it would wait for ever.
        threads = [threading.Thread(target=b.cell, args=("began = time.time(); time.sleep(2); ended = time.time()",))
                   for b in branches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        times = [eval(api.result(b.cell("began, ended"))) for b in branches]
        self.assertLess(max(began for began, _ in times), min(ended for _, ended in times))

    def test_random_numbers_are_their_own(self):
        self.s.cell("import random, numpy, ssl, uuid, secrets\nnumpy.random.seed(1); random.seed(1); numpy.random.randn()")
        drawn = [api.result(b.cell("random.random(), numpy.random.rand(), numpy.random.randn(), "
                                   "ssl.RAND_bytes(8), uuid.uuid4().hex, secrets.token_hex()"))
                 for b in self.fork(count=3)]
        for values in zip(*(eval(text) for text in drawn)):
            self.assertEqual(len(set(values)), 3, values)

    def test_an_open_database(self):
        self.s.cell("import sqlite3; db = sqlite3.connect('d.db'); db.execute('create table t (x)'); db.commit()\n"
                    "db.execute('insert into t values (1)')")
        branch, = self.fork()
        branch.cell("db.rollback()")
        self.s.cell("db.commit()")
        self.assertEqual(api.result(self.s.cell("db.execute('select * from t').fetchall()")), "[(1,)]")
        cell = branch.cell("sqlite3.connect('d.db').execute('select * from t').fetchall()")
        self.assertEqual(api.result(cell), "[]")

    def test_its_first_cell_dies(self):
        self.s.cell("x = 1; import os")
        branch, = self.fork()
        cell = branch.cell("x = 2; os.abort()")
        self.assertEqual((cell["status"], cell["restored_to"]), ("crashed", 1))
        self.assertEqual(api.result(branch.cell("x")), "1")

    def test_random_numbers_with_a_module_that_is_none(self):
        """As a program blocks an import, and worse."""
        for broken in ("uuid", "tempfile", "numpy.random"):
            with self.subTest(broken=broken):
                self.s.cell(f"import random, sys, {broken}; random.seed(1); sys.modules['{broken}'] = 5")
                drawn = [api.result(branch.cell("random.random()")) for branch in self.fork(count=2)]
                self.assertEqual(len({*drawn, api.result(self.s.cell("random.random()"))}), 3, drawn)

    def test_its_first_cell_dies_after_random_numbers(self):
        """What waits with a branch's first state was made before the branch had its own."""
        self.s.cell("import random, numpy, os, multiprocessing.process\nnumpy.random.seed(1); numpy.random.randn()")
        draw = ("print((random.random(), random.gauss(0, 1), numpy.random.rand(), numpy.random.randn(), "
                "bytes(multiprocessing.process.current_process().authkey)), flush=True)\n")
        branch, other = self.fork(count=2)
        first = branch.cell(draw + "os._exit(1)")
        self.assertEqual((first["status"], first["restored_to"]), ("crashed", 1))
        again, next_to_it, here = branch.cell(draw), other.cell(draw), self.s.cell(draw)
        drawn = [eval(api.text(cell, "stdout")) for cell in (first, again, next_to_it, here)]
        self.assertEqual(drawn[0], drawn[1])
        for values in zip(*drawn[1:]):
            self.assertEqual(len(set(values)), 3, values)

    def test_a_branch_of_what_waits_for_a_branch(self):
        self.s.cell("import random; f = open('a', 'w+'); f.write('abc'); f.flush(); x = [1]")
        branch, = self.fork()
        session = api.Session(self.client, self.client.post(branch.path + "/fork").json["sessions"][0]["id"])
        self.assertEqual(api.result(session.cell("x.append(2); f.write('d'); f.flush(); x")), "[1, 2]")
        self.assertEqual(session.cell("import os; os.abort()")["restored_to"], 2)
        self.assertEqual(api.result(session.cell("x, f.tell(), open('a').read()")), "([1, 2], 4, 'abcd')")
        self.assertEqual(branch.cell("x = 0; import os; os.abort()")["restored_to"], 1)
        self.assertEqual(api.result(branch.cell("x, f.tell(), open('a').read()")), "([1], 3, 'abc')")
        self.assertNotEqual(api.result(branch.cell("random.random()")), api.result(session.cell("random.random()")))

    def test_what_does_not_come_along_is_said(self):
        self.s.cell("import threading, time, os\n"
                    "t = threading.Thread(target=time.sleep, args=(30,), name='worker-1', daemon=True); t.start()\n"
                    "f = open('/tmp/f', 'w'); r, w = os.pipe()")
        branch, = self.fork()
        said = api.text(branch.cell("x = 1"), "stderr")
        for what in ("thread worker-1", "file", "pipe"):
            self.assertIn(what, said)
        self.assertEqual(api.text(branch.cell("x"), "stderr"), "")

    def test_no_descriptor_leads_back(self):
        """Neither what is left of a pipe or a socket, nor a directory, however it is open, shows files of the session that
        it left; and in that one the same names are there."""
        look = ("def names_by_descriptors():\n    found = []\n"
                "    for fd in map(int, os.listdir('/proc/self/fd')):\n        for name in ('later', 'mnt/data/later'):\n"
                "            try: found.append(os.stat(name, dir_fd=fd) and fd)\n            except OSError: pass\n    return found\n")
        self.s.cell("import os, socket\npipe = os.pipe(); s = socket.socket(); os.dup2(s.fileno(), 0)\n" + look +
                    "open_ = [os.open(d, f) for d in ('/mnt/data', '/') for f in (os.O_RDONLY, os.O_PATH)]")
        time.sleep(0.2)  # the one that waits has looked around
        at_once = self.fork()
        time.sleep(0.2)
        for branch in (*at_once, *self.fork()):
            self.s.cell("open('later', 'w').close()")
            self.assertEqual(api.result(self.s.cell("names_by_descriptors() == open_")), "True")
            self.assertEqual(api.result(branch.cell("names_by_descriptors()")), "[]")
            branch.cell("open('later', 'w').close()")  # and its own are there
            self.assertEqual(api.result(branch.cell("names_by_descriptors() == open_")), "True")
            self.s.cell("os.unlink('later')")

    def test_what_is_at_the_first_numbers(self):
        """A guest may close them, or put others there, and look at them when it is forked."""
        self.s.cell("import os, sys\nwith open('in', 'w') as f: f.write('one\\ntwo\\n')\n"
                    "seen = []\ndef look():\n    for fd in range(6):\n        try: seen.append(os.listdir(fd))\n        except OSError: pass\n"
                    "os.register_at_fork(after_in_child=look)\n"
                    "os.dup2(os.open('in', os.O_RDONLY), 0); os.dup2(os.open('/', os.O_RDONLY), 2)")
        branch, = self.fork()
        self.assertEqual(api.result(branch.cell("seen, os.read(0, 4)")), "([], b'one\\n')")
        self.assertEqual(branch.cell("os.abort()")["restored_to"], 2)
        self.assertEqual(api.result(branch.cell("os.read(0, 4)")), "b'two\\n'")
        self.s.cell("os.close(0); os.close(1); os.close(2)")
        branch, = self.fork()
        cell = branch.cell("print('out'); print('err', file=sys.stderr); seen, [fd for fd in range(6) if os.path.exists(f'/proc/self/fd/{fd}')]")
        self.assertEqual(api.result(cell), "([], [1, 2, 3, 4, 5])")
        self.assertEqual([(o["type"], o.get("text")) for o in cell["outputs"][:2]], [("stdout", "out\n"), ("stderr", "err\n")])

    def test_a_link_that_leads_through_a_descriptor(self):
        self.s.cell("import os; os.mkdir('e'); a = os.open('e', os.O_RDONLY); b = os.open('/', os.O_RDONLY)\n"
                    "os.symlink(f'/proc/self/fd/{b}', 'd')")
        self.s.cell("os.unlink('d'); os.rename('e', 'd'); open('later', 'w').close()")
        branch, = self.fork(at=1)
        self.assertEqual(api.result(branch.cell("os.path.exists(f'/proc/self/fd/{a}/mnt/data/later')")), "False")

    def test_mapped_memory_is_its_own(self):
        self.s.cell("import numpy as np, mmap\n"
                    "m = np.memmap('m.bin', dtype='u1', mode='w+', shape=8192); m[:] = 1; m.flush()\n"
                    "a = mmap.mmap(-1, 4096); a[:5] = b'hello'")
        branch, = self.fork()
        self.assertEqual(api.result(branch.cell("int(m.sum()), a[:5]")), "(8192, b'hello')")
        branch.cell("m[:] = 7; m.flush(); a[:5] = b'other'")
        self.assertEqual(api.result(self.s.cell("int(m.sum()), a[:5], open('m.bin', 'rb').read(1)")),
                         "(8192, b'hello', b'\\x01')")
        self.assertEqual(api.result(branch.cell("open('m.bin', 'rb').read(1)")), "b'\\x07'")
        self.s.cell("m[:] = 9")
        self.assertEqual(api.result(branch.cell("int(m[0])")), "7")

    def test_mapped_file_that_was_replaced_since(self):
        """What is mapped is the old one still, and in the branch its content."""
        self.s.cell("import numpy as np; m = np.memmap('m.bin', dtype='u1', mode='w+', shape=8192); m[:] = 1; m.flush()")
        time.sleep(0.3)  # the state that it leaves waits
        self.s.put("m.bin", b"shorter")
        branch, = self.fork()
        self.assertEqual(api.result(branch.cell("int(m.sum()), open('m.bin').read()")), "(8192, 'shorter')")

    def test_each_is_limited_by_itself(self):
        self.s.cell("x = 1")
        one, two = self.fork(count=2)
        cell = one.cell("b = bytearray(3 << 30)")
        self.assertIn(cell["status"], ("error", "limit"))
        self.assertEqual(api.result(two.cell("x")), "1")
        self.assertEqual(api.result(self.s.cell("x")), "1")

    def test_what_is_asked_is_checked(self):
        for body in ({"count": 0}, {"count": 65}, {"count": "2"}, {"at": -1}, {"at": "1"}, {"to": 1}):
            self.assertError(self.client.post(self.s.path + "/fork", **body), 400, "bad_request")
        self.assertError(self.client.post("/v1/sessions/" + "x" * 24 + "/fork"), 404, "not_found")

    def test_its_notebook_is_whole(self):
        self.s.cell("x = 1")
        self.s.cell("x = 2")
        branch, = self.fork()
        self.s.cell("x = 'not in it'")
        branch.cell("x = 3")
        answer = self.client.post(branch.path + "/fork")
        twig = api.Session(self.client, answer.json["sessions"][0]["id"])
        branch.cell("x = 'nor this'")
        twig.cell("x = 4")
        cells = self.client.get(twig.path + "/notebook").json["cells"]
        self.assertEqual([(c["execution_count"], "".join(c["source"])) for c in cells],
                         [(i, f"x = {i}") for i in (1, 2, 3, 4)])

    def test_the_journal_tells_after_the_end(self):
        self.s.cell("x = 1")
        branch, = self.fork()
        branch.cell("x")
        self.client.delete(branch.path)
        self.assertEqual(branch.info()["parent"], {"id": self.s.id, "n": 1})


class Quota(api.Case):
    def test_memory_is_counted_as_long_as_a_branch_has_it(self):
        server = self.start()
        client = server.client(server.new_token("small", "--memory", "1g"))
        session = client.session(limits={"memory": "256m"})
        session.cell("x = 1")
        for _ in range(3):
            answer = client.post(session.path + "/fork")
            self.assertEqual(answer.status, 201, answer.json)
            client.delete(session.path)
            session = api.Session(client, answer.json["sessions"][0]["id"])
        self.assertError(client.post(session.path + "/fork"), 429, "quota_memory")
        self.assertEqual(api.result(session.cell("x")), "1")
        client.delete(session.path)
        self.assertTrue(api.wait_until(lambda: client.post("/v1/sessions", limits={"memory": "1g"}).status == 201))


class Try(api.Case):
    def setUp(self):
        super().setUp()
        self.s = self.session()
        self.s.cell("x = 1; open('a', 'w').write('one')")

    def attempt(self, *candidates, **more):
        answer = self.client.post(self.s.path + "/try", candidates=list(candidates), **more)
        self.assertEqual(answer.status, 200, answer.json)
        return answer.json

    def test_the_first_that_ends_well(self):
        answer = self.attempt("x = 'bad'; 1/0", "x = 'good'; open('a', 'w').write('two'); x", "x = 'late'")
        self.assertEqual([c["status"] for c in answer["cells"]], ["error", "ok", "ok"])
        self.assertEqual(answer["kept"], 1)
        self.assertEqual(api.result(answer["cells"][1]), "'good'")
        self.assertEqual(api.result(self.s.cell("x, open('a').read()")), "('good', 'two')")
        self.assertEqual([c["n"] for c in journal(self.s)], [1, 2, 3])

    def test_none_is_kept(self):
        answer = self.attempt("x = 2", "open('a', 'w').write('two')", keep="none")
        self.assertEqual(([c["status"] for c in answer["cells"]], answer["kept"]), (["ok", "ok"], None))
        self.assertEqual(api.result(self.s.cell("x, open('a').read()")), "(1, 'one')")

    def test_none_ends_well(self):
        answer = self.attempt("1/0", "import os; os._exit(1)", keep="first_ok")
        self.assertEqual([c["status"] for c in answer["cells"]], ["error", "crashed"])
        self.assertIsNone(answer["kept"])
        self.assertEqual(api.result(self.s.cell("x")), "1")

    def test_again_and_again(self):
        for i in range(5):
            self.assertEqual(self.attempt("1/0", "x += 1")["kept"], 1)
        self.assertEqual(api.result(self.s.cell("x")), "6")
        self.assertEqual(self.s.cell("import os; os.abort()")["restored_to"], 6 + 1)

    def test_a_time_limit_for_each(self):
        answer = self.attempt("import time; time.sleep(60)", "x = 3", timeout=1)
        self.assertEqual([c["status"] for c in answer["cells"]], ["limit", "ok"])
        self.assertEqual(answer["kept"], 1)

    def interrupted(self, after_s):
        """The answer to candidates that would take a minute."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.client.post(
            self.s.path + "/try", candidates=["import time; time.sleep(60)", "time.sleep(60)"])))
        thread.start()
        api.wait_until(lambda: self.s.info()["status"] == "busy")
        time.sleep(after_s)
        self.client.post(self.s.path + "/interrupt")
        thread.join()
        return answers[0]

    def test_it_is_interrupted(self):
        for after_s in (1, 3, 9):
            answer = self.interrupted(after_s)
            if answer.status == 200:
                break
            self.assertError(answer, 503, "no_box")  # too early: not all of their boxes stood
        self.assertEqual(answer.status, 200, answer.json)
        self.assertIsNone(answer.json["kept"])
        self.assertEqual(api.result(self.s.cell("x")), "1")

    def test_after_going_back(self):
        """The numbers of what was undone are not given out again: the journal has them."""
        self.s.cell("x = 2")
        self.s.cell("x = 3")
        self.client.post(self.s.path + "/rollback", to=1)
        self.assertEqual(self.attempt("x = 'tried'")["cells"][0]["n"], 4)
        self.assertEqual(self.s.cell("x")["n"], 5)
        self.assertEqual([c["n"] for c in journal(self.s)], [1, 2, 3, 4, 5])
        self.assertError(self.client.post(self.s.path + "/rollback", to=3), 409, "no_checkpoint")

    def test_one_that_dies_while_the_others_run_is_not_kept(self):
        answer = self.attempt("import os, threading\n"
                              "threading.Timer(0.3, os.write, (3, b'no frame at all' * 100)).start()",
                              "import time; time.sleep(2); x = 'late'")
        # On a busy machine it is dead before its cell was told.
        self.assertIn([c["status"] for c in answer["cells"]], (["ok", "ok"], ["crashed", "ok"]))
        self.assertEqual(answer["kept"], 1)
        self.assertEqual(api.result(self.s.cell("x")), "'late'")

    def test_they_share_what_one_may_show(self):
        show = "from IPython.display import display\ndisplay({{'image/png': b'p' * ({} << 20)}}, raw=True)"
        answer = self.attempt(show.format(9), show.format(3), *["x = 2"] * 6, keep="none")
        self.assertEqual([c["status"] for c in answer["cells"]], ["ok"] * 8)
        large, small = answer["cells"][:2]
        self.assertEqual((large["outputs"], large["truncated"]["displays"]), ([], 1))
        self.assertEqual([len(o["data"]["image/png"]) for o in small["outputs"]], [4 << 20])
        self.assertEqual([len(o["data"]["image/png"]) for o in self.s.cell(show.format(9))["outputs"]], [12 << 20])

    def test_they_share_a_text_however_long_it_may_be(self):
        self.s = self.session(limits={"output": "64m"})
        answer = self.attempt(*["print('x' * (20 << 20))"] * 4)
        for cell in answer["cells"]:
            self.assertEqual(sum(len(o["text"]) for o in cell["outputs"]), 16 << 20)
            self.assertEqual(cell["limit"]["limit"], 16 << 20)
        self.assertEqual(answer["kept"], 0)
        # The one that is kept stands alone again.
        self.assertEqual(len(api.text(self.s.cell("print('x' * (20 << 20))"))), (20 << 20) + 1)

    def test_what_is_asked_is_checked(self):
        for body in ({}, {"candidates": []}, {"candidates": "x"}, {"candidates": [1]},
                     {"candidates": ["1"] * 33}, {"candidates": ["1"], "keep": "all"}):
            self.assertError(self.client.post(self.s.path + "/try", **body), 400, "bad_request")


class Rounds(api.Case):
    ROUNDS = int(os.environ.get("ROUNDS", "60"))

    def test_nothing_is_left_of_them(self):
        server = self.start()
        session = api.Session(server.client(), server.client().session().id)
        session.cell("x = 1; open('a', 'w').write('a')")
        # Once, and what is made at the first use is there.
        for rounds in (5, self.ROUNDS):
            for i in range(rounds):
                answer = session.client.post(session.path + "/fork")
                self.assertEqual(answer.status, 201, answer.json)
                branch = api.Session(session.client, answer.json["sessions"][0]["id"])
                self.assertEqual(api.result(branch.cell("x")), "1")
                self.assertEqual(branch.client.delete(branch.path).status, 204)
            if rounds == 5:
                before = len(list(server.own_processes())), server.descriptors()
        self.assertTrue(api.wait_until(lambda: len(list(server.own_processes())) <= before[0]))
        self.assertTrue(api.wait_until(lambda: server.descriptors() <= before[1] + 2), (before, server.descriptors()))
        self.assertEqual(api.result(session.cell("x")), "1")

    def test_one_that_becomes_the_other_again_and_again(self):
        """Each leaves the one before it, which ends: what is left of those goes with the last."""
        session = self.session()
        session.cell("x = 0")
        for i in range(10):
            answer = self.client.post(session.path + "/fork")
            self.assertEqual(answer.status, 201, answer.json)
            self.client.delete(session.path)
            session = api.Session(self.client, answer.json["sessions"][0]["id"])
            session.cell("x += 1")
        self.assertEqual(api.result(session.cell("x")), "10")

    def test_there_is_an_end_to_it(self):
        session = self.session()
        session.cell("x = 0")
        sessions = [session]
        for depth in range(40):
            answer = self.client.post(sessions[-1].path + "/fork")
            if answer.status != 201:
                break
            sessions.append(api.Session(self.client, answer.json["sessions"][0]["id"]))
        self.assertError(answer, 503, "no_box", "branch of a branch")
        self.assertEqual(depth, 24)
        self.assertEqual(api.result(sessions[-1].cell("x")), "0")
        for session in sessions:
            self.client.delete(session.path)
