"""What a session was: surviving its interpreter, the list of checkpoints, going back, undoing."""
import time

import api


class Survive(api.Case):
    def setUp(self):
        self.s = self.session()
        self.s.cell("x = [1]; import os")

    def dies(self, code, status, **more):
        cell = self.s.cell(code, **more)
        self.assertEqual((cell["status"], cell.get("restored_to"), "session_ended" in cell), (status, self.last, False))
        return cell

    def test_each_way_to_die(self):
        self.last = 1
        for code in ("print('before', flush=True); x.append(2); os._exit(3)", "x.append(2); os.abort()",
                     "import ctypes; x.clear(); ctypes.string_at(0)"):
            with self.subTest(code=code):
                cell = self.dies(code, "crashed")
                self.assertIn("error", cell)
        self.assertEqual(api.result(self.s.cell("x")), "[1]")

    def test_what_it_printed_is_kept(self):
        self.last = 1
        self.assertEqual(api.text(self.dies("print('before'); os._exit(3)", "crashed")), "before\n")

    def test_one_who_does_not_listen(self):
        self.last = 1
        cell = self.dies("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", "limit",
                         timeout=0.5)
        self.assertEqual(cell["limit"]["kind"], "wall")
        self.assertEqual(api.result(self.s.cell("x")), "[1]")

    def test_the_journal_has_it(self):
        self.last = 1
        self.dies("os._exit(3)", "crashed")
        self.assertEqual(self.s.client.get(self.s.path + "/cells/2").json["restored_to"], 1)


DIES = "import _signal; _signal.signal(14, _signal.SIG_DFL); _signal.setitimer(_signal.ITIMER_REAL, .3)"


class BetweenCells(api.Case):
    """The interpreter dies while no cell runs."""

    def setUp(self):
        self.s = self.session()

    def test_it_goes_on(self):
        for n in (1, 4):
            self.s.cell("x = 1; " + DIES)
            time.sleep(0.8)
            self.assertEqual(self.s.info()["status"], "idle")
            cell = self.s.cell("x + 1")
            self.assertEqual((api.result(cell), cell["n"]), ("2", n + 1))
            self.assertNotIn("restored_to", cell)
            self.assertRegex(api.text(cell, "stderr"), r"^retort: the interpreter was killed by signal 14 \(Alarm clock\) while "
                             rf"no cell ran; the session goes on with the state after cell {n}\n$")
            self.assertEqual(api.text(self.s.cell("x"), "stderr"), "")

    def test_what_is_lost_is_told_too(self):
        self.s.cell("import threading, time\n"
                    "threading.Thread(target=time.sleep, args=(600,), name='worker-1', daemon=True).start()\n" + DIES)
        time.sleep(0.8)
        self.assertIn("thread worker-1", api.text(self.s.cell("1"), "stderr"))

    def test_whatever_comes_next(self):
        self.s.cell("x = 1; " + DIES)
        time.sleep(0.8)
        names = [v["name"] for v in self.s.client.get(self.s.path + "/variables").json["data"]]
        self.assertIn("x", names)
        self.s.cell("x = 2; " + DIES)
        time.sleep(0.8)
        self.assertEqual(self.s.client.post(self.s.path + "/rollback", to=1).status, 200)
        self.assertEqual(api.result(self.s.cell("x")), "1")
        self.s.cell("x = 3; " + DIES)
        time.sleep(0.8)
        self.assertEqual(self.s.client.post(self.s.path + "/check", code="x").json["status"], "complete")

    def test_at_the_very_moment(self):
        """Orders that come while it dies are run all the same."""
        self.s.cell("x = 0")
        self.s.cell("1")
        for i in range(20):
            last = self.s.cell(f"x = {i}; " + DIES.replace(".3", str(0.012 + i / 4000)))
            time.sleep(0.012 + i / 4000)
            self.assertNotIn("session_ended", last)
            cell = self.s.cell("x")
            if cell["status"] == "crashed":  # it was faster than the alarm
                self.assertIn("restored_to", cell)
            elif api.result(cell) != str(i) and "restored_to" not in last:  # the alarm was faster than the checkpoint
                self.assertRegex(api.text(cell, "stderr"), r"goes on (with the state after cell \d+|as it began)\n")

    def test_memory(self):
        s = self.session(limits={"memory": "200m"})
        s.cell("x = 1")
        s.cell("import threading, time\n"
               "def eat():\n    time.sleep(.2)\n    y = bytearray(400 << 20)\n"
               "threading.Thread(target=eat).start()")
        time.sleep(3)
        cell = s.cell("x")
        if cell["status"] == "limit":  # it took that long to die
            self.assertIn("restored_to", cell)
        else:
            self.assertIn("the interpreter was killed for want of memory while no cell ran", api.text(cell, "stderr"))
        self.assertEqual(api.result(s.cell("x")), "1")

    def test_a_protocol_that_is_broken_is_its_end(self):
        """While no cell runs: half a second is more than the answer takes."""
        self.s.cell("import os, _signal; _signal.signal(14, lambda *_: os.write(3, bytes(64))); "
                    "_signal.setitimer(_signal.ITIMER_REAL, .5)")
        self.assertTrue(api.wait_until(lambda: self.s.info()["status"] == "ended"))


class Back(api.Case):
    def setUp(self):
        self.s = self.session()
        self.s.cell("x = 1; open('a', 'w').write('one')")
        self.s.cell("x = 2; open('a', 'w').write('two'); open('b', 'w').write('new')")
        self.s.cell("import os; x = 3; os.unlink('a')")

    def rollback(self, to, status=200):
        answer = self.s.client.post(self.s.path + "/rollback", to=to)
        self.assertEqual(answer.status, status, answer)
        return answer

    def test_arithmetic_takes_no_state_the_place(self):
        first = self.s.cell("x = 0")["n"]
        for x in range(1, 5):
            self.s.cell(f"x = {x}")
        for code in ("(x + 1) * 2", "'a: (b'", "x == 5 != x", "-x ** 2 <= 7", "x") * 2:
            self.s.cell(code)
        for x in (4, 3, 1, 0):
            self.rollback(first + x)
            self.assertEqual(api.result(self.s.cell("x")), str(x))

    def listed(self):
        return self.s.client.get(self.s.path + "/checkpoints").json["checkpoints"]

    def test_variables_and_files(self):
        self.s.cell("1")
        self.assertEqual(self.rollback(1).json["id"], self.s.id)
        cell = self.s.cell("import os; x, open('a').read(), os.listdir()")
        self.assertEqual(api.result(cell), "(1, 'one', ['a'])")
        self.assertEqual((cell["n"], cell["files"]), (5, []))

    def test_forward_again_is_no_way(self):
        self.s.cell("1")
        self.rollback(2)
        answer = self.rollback(3, status=409)
        self.assertEqual(answer.json["error"]["code"], "no_checkpoint")
        self.assertIn("there are", answer.json["error"]["message"])
        self.assertEqual(api.result(self.s.cell("x")), "2")

    def test_the_list(self):
        self.assertTrue(api.wait_until(lambda: self.listed()[-1]["n"] == 3))
        points = self.listed()
        self.assertEqual([p["n"] for p in points][-3:], [1, 2, 3])
        self.assertTrue(all(p["lost"] == [] for p in points))
        self.s.cell("7")
        self.assertEqual(self.listed()[-1]["n"], 4)

    def test_what_is_lost(self):
        self.s.cell("import threading, time, socket\n"
                    "threading.Thread(target=time.sleep, args=(600,), name='worker-1', daemon=True).start()\n"
                    "pair = socket.socketpair()")
        self.assertTrue(api.wait_until(lambda: self.listed()[-1]["n"] == 4))
        lost = self.listed()[-1]["lost"]
        self.assertIn("thread worker-1", lost)
        self.assertEqual(sum(l.startswith("socket") for l in lost), 2)
        self.rollback(4)
        self.assertIn("thread worker-1", api.text(self.s.cell("print(1)"), "stderr"))

    def test_locks_are_said_to_be_lost(self):
        self.s.cell("import fcntl, sqlite3\nf = open('held', 'w'); fcntl.flock(f, fcntl.LOCK_EX)\n"
                    "db = sqlite3.connect('a.db'); _ = db.execute('begin exclusive')")
        self.assertTrue(api.wait_until(lambda: self.listed()[-1]["n"] == 4))
        lost = self.listed()[-1]["lost"]
        self.assertIn("lock on /mnt/data/held", lost)
        self.assertIn("lock on /mnt/data/a.db", lost)
        self.rollback(4)
        self.assertIn("lock on /mnt/data/held", api.text(self.s.cell("1"), "stderr"))
        self.s.cell("many = [open('😀' * 50 + str(i), 'w') for i in range(300)]\n"
                    "for each in many: fcntl.flock(each, fcntl.LOCK_EX)")
        self.assertTrue(api.wait_until(lambda: self.listed()[-1]["n"] == 6))
        self.assertRegex(self.listed()[-1]["lost"][20], r"^others \(28\d threads, processes or locks\)$")

    def test_an_event_loop_is_not_missed(self):
        """Its descriptors are lost too, but a cell that awaits gets another."""
        self.s.cell("import asyncio; await asyncio.sleep(0.01)")
        self.assertTrue(api.wait_until(lambda: self.listed()[-1]["n"] == 4))
        self.rollback(4)
        cell = self.s.cell("await asyncio.sleep(0.01, 'again')")
        self.assertEqual((api.result(cell), api.text(cell, "stderr")), ("'again'", ""))

    def test_shared_memory_is_said_to_be_lost(self):
        self.s.cell("import mmap, multiprocessing\nm = mmap.mmap(-1, 1 << 20)\n"
                    "f = open('mapped', 'w+b'); f.truncate(4096); own = mmap.mmap(f.fileno(), 4096)\n"
                    "only_read = mmap.mmap(f.fileno(), 4096, access=mmap.ACCESS_READ)\nm[0] = own[0] = 1")
        self.s.cell("m[0] = own[0] = 2")
        self.assertTrue(api.wait_until(lambda: self.listed()[-1]["n"] == 5))
        self.assertEqual([p["lost"] for p in self.listed() if p["n"] in (3, 4)], [[], ["shared memory of 1028 kB"]])
        self.rollback(4)
        cell = self.s.cell("m[0], own[0]")
        self.assertEqual(api.result(cell), "(2, 2)")
        self.assertIn("shared memory of 1028 kB", api.text(cell, "stderr"))

    def test_bad_requests(self):
        for body in ({}, {"to": "1"}, {"to": -1}, {"to": 1.5}, {"to": 1, "x": 2}, {"to": 2 ** 32}):
            with self.subTest(body=body):
                self.assertEqual(self.s.client.post(self.s.path + "/rollback", **body).status, 400)

    def test_a_large_file_comes_back(self):
        self.s.cell("open('big', 'wb').write(b'x' * 100_000_000)")
        self.s.cell("os.unlink('big')")
        self.s.cell("1")
        self.rollback(4)
        cell = self.s.cell("os.path.getsize('big')")
        self.assertEqual(api.result(cell), "100000000", cell)

    def test_an_open_file(self):
        self.s.cell("f = open('log', 'w+'); f.write('abc'); f.flush()")
        self.s.cell("f.write('def'); f.flush()")
        self.s.cell("1")
        self.rollback(4)
        cell = self.s.cell("f.write('X'); f.flush(); f.tell(), open('log').read()")
        self.assertEqual(api.result(cell), "(4, 'abcX')", cell)


class Pressure(api.Case):
    """When memory is short: the oldest first, then copies of files, and never the cell that needs it."""

    FILL = "y = []\nfor i in range({0} // 4): y.append(bytearray(4 << 20))\nlen(y)"

    def setUp(self):
        self.s = self.session(limits={"memory": "400m"})

    def listed(self):
        return [p["n"] for p in self.s.client.get(self.s.path + "/checkpoints").json["checkpoints"]]

    def test_the_oldest_go_first(self):
        """Whether they have rested, and are smaller then, or not."""
        for rested in ((), (1, 2, 3), (4, 5, 6)):
            with self.subTest(rested=rested):
                self.s = self.session(limits={"memory": "400m"})
                for i in range(1, 8):
                    self.s.cell(f"x = bytes([{i}]) * (40 << 20)")
                    time.sleep(0.15 if i in rested else 0)
                self.check_the_oldest_go_first()
                self.s.delete()

    def check_the_oldest_go_first(self):
        self.assertTrue(api.wait_until(lambda: self.listed()[-7:] == [1, 2, 3, 4, 5, 6, 7]))
        cell = self.s.cell(self.FILL.format(200))
        self.assertEqual((cell["status"], cell.get("limit")), ("ok", None))
        self.assertLessEqual(cell["receipt"]["peak_memory"], 400 << 20)
        left = [n for n in self.listed() if n <= 7]
        self.assertLess(len(left), 6)
        self.assertEqual(left, [1, 2, 3, 4, 5, 6, 7][-len(left):])
        cell = self.s.cell(self.FILL.format(400))
        self.assertEqual((cell["status"], cell["limit"]["kind"], cell["restored_to"]), ("limit", "memory", 8))
        self.assertEqual(api.result(self.s.cell("x[0], len(y)")), "(7, 50)")

    def test_one_that_has_gone_back_is_the_newest(self):
        self.s.cell("x = [1]")
        self.s.cell("x.append(2)")
        self.s.cell("x.append(3)")
        self.s.cell("1")
        self.assertEqual(self.s.client.post(self.s.path + "/rollback", to=1).status, 200)
        cell = self.s.cell(self.FILL.format(600))
        self.assertEqual((cell["status"], cell["restored_to"]), ("limit", 1))
        self.assertEqual(api.result(self.s.cell("x")), "[1]")

    def test_copies_make_room(self):
        self.s.cell("f = open('big', 'wb'); _ = [f.write(b'a' * (1 << 20)) for _ in range(80)]; f.close()")
        self.s.cell("1")
        cell = self.s.cell(self.FILL.format(260))
        self.assertEqual((cell["status"], cell.get("limit")), ("ok", None))
        self.s.cell("y = 0; open('big', 'wb').write(b'd')")
        self.s.cell("1")
        answer = self.s.client.post(self.s.path + "/rollback", to=2)
        if answer.status == 409:
            # Where the holder of the copies dies slowly, on a busy machine, the oldest state goes with it; never more.
            self.assertIn("there are: 3, 4 to 5", answer.json["error"]["message"])
            self.assertEqual(api.result(self.s.cell("y")), "0")
            return
        self.assertEqual(answer.status, 200, answer.json)
        cell = self.s.cell("open('big').read()")
        self.assertEqual(api.result(cell), "'d'")
        self.assertIn("not brought back: big\n", api.text(cell, "stderr"))

    def test_no_copy_costs_the_session(self):
        self.s.cell("x = b'1' * (250 << 20)")
        self.s.cell("f = open('big', 'wb'); _ = [f.write(b'a' * (1 << 20)) for _ in range(90)]; f.close()")
        cell = self.s.cell("len(x)")
        self.assertEqual((cell["status"], api.result(cell), cell.get("limit")), ("ok", str(250 << 20), None))
        self.assertEqual(api.text(cell, "stderr"), "")
        self.s.cell("open('big', 'wb').write(b'b')")
        self.s.cell("1")
        self.assertEqual(self.s.client.post(self.s.path + "/rollback", to=3).status, 200)
        cell = self.s.cell("open('big', 'rb').read()")
        self.assertEqual(api.result(cell), "b'b'")
        self.assertIn("not brought back: big\n", api.text(cell, "stderr"))

    def test_copies_have_their_share(self):
        """Of many small steps too, whose checkpoints are long gone."""
        for i in range(20):
            self.s.cell(f"open('f{i}', 'wb').write(bytes(8 << 20)); None")
        self.s.cell("import os; [os.unlink(f'f{i}') for i in range(20)]")
        self.s.cell("1")
        self.assertEqual(self.s.client.post(self.s.path + "/rollback", to=20).status, 200)
        back = int(api.result(self.s.cell("import os; sum(os.path.getsize(f) == 8 << 20 for f in os.listdir())")))
        self.assertGreater(back, 8)
        self.assertLess(back, 20)


class Undo(api.Case):
    def setUp(self):
        self.s = self.session()

    def test_nothing_is_left_of_what_fails(self):
        self.s.cell("x = [1]; open('a', 'w').write('one')")
        cell = self.s.cell("x.append(2); open('a', 'w').write('two'); open('b', 'w'); 1/0", on_error="rollback")
        self.assertEqual((cell["status"], cell["error"]["name"], cell["restored_to"]), ("error", "ZeroDivisionError", 1))
        self.assertEqual(api.result(self.s.cell("import os; x, open('a').read(), os.listdir()")), "([1], 'one', ['a'])")

    def test_the_first_cell(self):
        cell = self.s.cell("x = 1; 1/0", on_error="rollback")
        self.assertEqual(cell["restored_to"], 0)
        self.assertEqual(api.result(self.s.cell("'x' in globals()")), "False")

    def test_what_ends_well_stays(self):
        self.assertNotIn("restored_to", self.s.cell("x = 1", on_error="rollback"))
        self.assertEqual(api.result(self.s.cell("x")), "1")

    def is_kept(self):
        points = self.s.client.get(self.s.path + "/checkpoints").json["checkpoints"]
        return bool(points) and points[-1]["n"] == self.s.info()["cells"]

    def test_what_was_uploaded_before_it_is_no_part_of_it(self):
        """It was, where the state before the cell had been kept before the upload came."""
        look = "import os; open('new').read(), os.path.exists('old')"
        for text in ("before the first cell", "between two"):
            self.s.put("old", b"x")
            api.wait_until(self.is_kept, 5)  # on a busy machine it may not be, and then nothing can be wrong
            self.s.put("new", text.encode())
            self.s.client.delete(self.s.file("old"))
            self.s.cell("import os; os.remove('new'); open('old', 'w'); 1/0", on_error="rollback")
            self.assertEqual(api.result(self.s.cell(look)), str((text, False)))

    def test_nor_is_a_state_kept_twice(self):
        self.s.cell("x = 1")
        for _ in range(3):
            self.s.put("new", b"x")
            self.s.cell("1/0", on_error="rollback")
        points = [p["n"] for p in self.s.client.get(self.s.path + "/checkpoints").json["checkpoints"]]
        self.assertEqual(points, sorted(set(points)))

    def test_a_crash_takes_its_files_along(self):
        self.s.cell("x = 1")
        cell = self.s.cell("open('a', 'w').write('one'); import os; os._exit(1)", on_error="rollback")
        self.assertEqual((cell["status"], cell["restored_to"]), ("crashed", 1))
        self.assertEqual(api.result(self.s.cell("import os; os.listdir()")), "[]")

    def test_a_word_that_is_none(self):
        self.assertEqual(self.s.client.post(self.s.path + "/cells", code="1", on_error="explode").status, 400)


FORK = """
pid = os.fork()
if pid == 0: os._exit(0)
os.waitpid(pid, 0)
"""
HANDLERS = """
import gc, logging, os, threading
seen = []
def look(): seen.append((len(handlers) == whole, threading._after_fork in handlers))
os.register_at_fork(after_in_child=look)
gc.unfreeze()
(handlers,) = [each for each in gc.get_referrers(look) if type(each) is list]  # Python's own
whole = len(handlers)
"""
# The first fork of the user's brings them back; then it is as if they had never been away.
HANDLERS_BACK = HANDLERS + FORK + "whole = len(handlers)\n"


class Forks(api.Case):
    """Handlers of libraries are left out of a fork that keeps a session, and of no other."""

    def seen_after_a_death(self, s):
        self.assertIn("restored_to", s.cell("os._exit(1)"))
        return api.result(s.cell("seen, len(handlers) == whole"))

    def test_one_thread(self):
        s = self.session()
        self.assertEqual(s.cell(HANDLERS_BACK)["status"], "ok")
        self.assertEqual(self.seen_after_a_death(s), "([(False, False)], True)")
        child = "pid = os.fork()\nif pid == 0: os._exit(len(seen) == 2 and seen[1] == (True, True))\n"
        self.assertEqual(api.result(s.cell(child + "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])")), "1")

    def test_before_the_first_fork_of_the_users(self):
        """To be kept brings nothing back, and in a state that was kept the first fork still does."""
        s = self.session()
        self.assertEqual(s.cell(HANDLERS)["status"], "ok")
        self.assertEqual(self.seen_after_a_death(s), "([(True, False)], True)")
        said = "len(handlers) > whole, handlers[0] is threading._after_fork, handlers[-1] is look, logging._lock._is_owned()"
        for _ in range(2):  # and the next one leaves them as they are
            self.assertEqual(api.result(s.cell(FORK + said)), "(True, True, True, False)")

    def test_what_is_registered_meanwhile(self):
        s = self.session()
        s.cell(HANDLERS_BACK + "late = []\nos.register_at_fork(after_in_child=lambda: late or "
               "late.append(os.register_at_fork(after_in_child=lambda: seen.append('late'))))")
        self.assertIn("restored_to", s.cell("os._exit(1)"))
        self.assertEqual(api.result(s.cell("len(handlers) - whole, threading._after_fork in handlers")), "(2, True)")

    def test_threads(self):
        s = self.session()
        s.cell(HANDLERS_BACK + "wait = threading.Event()\nthreading.Thread(target=wait.wait, daemon=True).start()")
        self.assertEqual(self.seen_after_a_death(s), "([(True, True)], True)")
        self.assertEqual(api.result(s.cell("threading.active_count()")), "1")

    def test_random_numbers_go_on(self):
        for thread in ("", "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start(); "):
            with self.subTest(thread=thread):
                s = self.session()
                s.cell(thread + "import os, random; random.seed(5); random.random()")
                expected = api.result(s.cell("random.random()"))
                s.client.post(s.path + "/rollback", to=1)
                self.assertEqual(api.result(s.cell("random.random()")), expected)


WAITING = "import os; sum(p.isdigit() and 128 <= int(p) < 256 for p in os.listdir('/proc'))"


class HowMany(api.Case):
    def listed(self, s):
        return s.client.get(s.path + "/checkpoints").json["checkpoints"]

    def test_by_default(self):
        s = self.session()
        self.assertEqual(s.info()["checkpoints"], 8)
        for i in range(12):
            s.cell(f"x = {i}")
        self.assertTrue(api.wait_until(lambda: self.listed(s)[-1]["n"] == 12))
        self.assertEqual(len(self.listed(s)), 8)
        self.assertEqual(api.result(s.cell(WAITING)), "8")

    def test_another_number(self):
        for most in (1, 2, 20):
            with self.subTest(most=most):
                s = self.session(checkpoints=most)
                self.assertEqual(s.info()["checkpoints"], most)
                for i in range(24):
                    s.cell(f"x = {i}")
                s.cell("1")
                points = self.listed(s)
                self.assertEqual(len(points), most)
                self.assertEqual(points[-1]["n"], 25)
                self.assertEqual(s.cell("import os; os._exit(1)")["restored_to"], 25)
                self.assertEqual(api.result(s.cell("x")), "23")

    def test_none(self):
        """Also of a box that was made before anybody said so."""
        for code in ("import os; os._exit(1)", "import ctypes; ctypes.string_at(0)"):
            with self.subTest(code=code):
                s = self.session(checkpoints=0)
                self.assertEqual(s.info()["checkpoints"], 0)
                s.cell("x = [1]; import os; hooked = []; os.register_at_fork(before=lambda: hooked.append(1))")
                time.sleep(0.1)
                self.assertEqual(self.listed(s), [])
                self.assertEqual(api.result(s.cell(WAITING)), "0")
                self.assertEqual(api.result(s.cell("hooked")), "[]")
                answer = s.client.post(s.path + "/rollback", to=1)
                self.assertError(answer, 409, "no_checkpoint", "there are: none")
                cell = s.cell(code)
                self.assertEqual((cell["status"], cell.get("session_ended")), ("crashed", True))
                self.assertNotIn("restored_to", cell)
                self.assertEqual(s.client.post(s.path + "/cells", code="x").status, 410)

    def test_nothing_can_be_undone_then(self):
        s = self.session(checkpoints=0)
        answer = s.client.post(s.path + "/cells", code="x = 1", on_error="rollback")
        self.assertError(answer, 409, "no_checkpoint", "is 0")
        self.assertEqual(s.cell("x = 1", on_error="keep")["n"], 1)

    def test_what_is_no_number_of_them(self):
        for wrong in (-1, 33, 1.5, "8", "none", [], True, 2 ** 40):
            with self.subTest(wrong=wrong):
                self.assertError(self.client.post("/v1/sessions", checkpoints=wrong), 400, "bad_request", "0 to 32")


class Large(api.Case):
    def test_two_hundred_states_of_500_mb(self):
        """All of them together stay within the limit: the oldest go, and never the session."""
        session = self.session(limits={"memory": "1g"})
        session.cell("a = b'x' * (500 << 20); x = -1")
        for i in range(200):
            cell = session.cell(f"x += 1; y{i} = bytes(1 << 20)")
            self.assertEqual((cell["status"], cell.get("restored_to")), ("ok", None), cell)
        listed = lambda: session.client.get(session.path + "/checkpoints").json["checkpoints"]
        self.assertTrue(api.wait_until(lambda: listed()[-1]["n"] == 201), listed())
        self.assertLessEqual(len(listed()), 8)
        self.assertEqual(session.cell("import os; os.abort()")["restored_to"], 201)
        self.assertEqual(api.result(session.cell("x, len(a), a[-1:]")), "(199, 524288000, b'x')")


class Open(api.Case):
    def setUp(self):
        self.s = self.session()

    def rollback(self, to):
        answer = self.s.client.post(self.s.path + "/rollback", to=to)
        self.assertEqual(answer.status, 200, answer)

    def test_a_transaction(self):
        self.s.cell("import sqlite3; db = sqlite3.connect('d.db'); db.execute('create table t (x)'); db.commit()\n"
                    "_ = db.execute('insert into t values (1)')")
        self.s.cell("db.commit(); db.execute('delete from t'); db.commit()")
        self.rollback(1)
        self.assertEqual(api.result(self.s.cell("db.in_transaction, db.execute('select * from t').fetchall()")),
                         "(True, [(1,)])")
        self.s.cell("db.rollback()")
        self.assertEqual(api.result(self.s.cell("db.execute('select * from t').fetchall()")), "[]")

    def test_a_thread_in_native_code(self):
        """Works on without, and says so."""
        self.s.cell("x = 0")
        self.s.cell("import threading, hashlib, time\n"
                    "def work():\n"
                    "    data = bytes(64 << 20); end = time.time() + 5\n"
                    "    while time.time() < end: hashlib.sha256(data).digest()\n"
                    "t = threading.Thread(target=work); t.start(); time.sleep(0.2); x = 1")
        said = api.text(self.s.cell("x = 2"), "stderr") + api.text(self.s.cell("x = 3"), "stderr")
        self.assertEqual(said.count("is not kept: a thread was in native code"), 1, said)
        kept = [p["n"] for p in self.s.client.get(self.s.path + "/checkpoints").json["checkpoints"]]
        self.assertIn(1, kept)
        self.assertNotIn(3, kept)
        self.s.cell("t.join(); x = 5")
        self.s.cell("x = 6")
        self.assertEqual(self.s.cell("import os; os.abort()")["restored_to"], 6)

    def test_the_state_before_one_that_is_not_kept(self):
        """Cells that change nothing are no reason to take it for theirs."""
        self.s.cell("x = 1")
        self.s.cell("import threading, hashlib, time\n"
                    "t = threading.Thread(target=hashlib.pbkdf2_hmac, args=('sha256', b'', b'', 3_000_000)); t.start()\n"
                    "time.sleep(0.1); x = 2")
        for code in ("x", "x + 1"):
            self.s.cell(code)
        answer = self.s.client.post(self.s.path + "/rollback", to=4)
        if answer.status == 200:  # it was kept after all
            self.assertEqual(api.result(self.s.cell("x")), "2")
        else:
            self.assertError(answer, 409, "no_checkpoint")
        self.s.cell("t.join()")

    def test_numbers_of_the_system_never_come_twice(self):
        """Random numbers that a program can seed are a part of its state; those of the system are not."""
        self.s.cell("import os, ssl, random, secrets, uuid")
        draw = "os.urandom(8), ssl.RAND_bytes(8), secrets.token_hex(), uuid.uuid4().hex"
        drawn = [api.result(self.s.cell(draw))]
        for _ in range(3):
            self.rollback(1)
            drawn.append(api.result(self.s.cell(draw)))
        self.assertEqual(len(set(drawn)), 4, drawn)

    def test_while_processes_fork(self):
        """A state may be missing then, and no more than that: the session goes on."""
        self.s.cell("import os, time\nx = 1")
        self.s.cell("def breed(until):\n"
                    "    while time.time() < until:\n"
                    "        try: pid = os.fork()\n"
                    "        except OSError: time.sleep(0.001); continue\n"
                    "        if pid == 0: os._exit(0)\n"
                    "        os.waitpid(pid, 0)\n"
                    "for _ in range(20):\n"
                    "    if os.fork() == 0:\n"
                    "        breed(time.time() + 3); os._exit(0)\n")
        for i in range(10):
            self.assertEqual(self.s.cell(f"x = {i}")["status"], "ok")
        cell = self.s.cell("os._exit(1)")
        self.assertEqual(cell["status"], "crashed")
        self.assertGreaterEqual(cell["restored_to"], 1)
        self.assertEqual(self.s.cell("x")["status"], "ok")
