"""Files out of the workspace: downloads, ranges, lists, archives, and what must never be served."""
import io
import os
import re
import time
import urllib.parse
import zipfile

import api


class Get(api.Case):
    def setUp(self):
        self.s = self.session()

    def test_headers(self):
        self.s.put("a.html", b"<script>alert(1)</script>")
        headers = self.s.get("a.html").headers
        self.assertEqual(headers["Content-Disposition"].split(";")[0], "attachment")
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["Accept-Ranges"], "bytes")
        self.assertEqual(headers["Content-Length"], "25")
        self.assertIsNone(headers["ETag"])

    def test_dispositions(self):
        for name in ("plain.txt", "dir/last.txt", "quo\"te", "back\\slash", "new\nline", "semi;colon", "é.txt", "漢",
                     "x" * 255, "\x7f", "%41"):
            with self.subTest(name=name):
                self.s.put(name, b"x")
                value = self.s.get(name).headers["Content-Disposition"]
                self.assertRegex(value, r'^attachment; filename="(?:[ !#-\[\]-~]|\\["\\])*"(?:; filename\*=UTF-8\'\'[\w.!~%+^`|&$#-]+)?$')
                last = name.rsplit("/", 1)[-1]
                extended = re.search(r"filename\*=UTF-8''(\S+)", value)
                if extended:
                    self.assertEqual(urllib.parse.unquote(extended[1]), last)
                else:
                    self.assertEqual(re.search(r'filename="(.*)"', value)[1], last)

    def test_types(self):
        for name, kind in (("a.png", "image/png"), ("a.PNG", "image/png"), ("a.csv", "text/csv; charset=utf-8"),
                           ("a.json", "application/json"), ("a.pdf", "application/pdf"), ("a", "application/octet-stream"),
                           ("a.unknown", "application/octet-stream"), ("a.txt", "text/plain; charset=utf-8")):
            with self.subTest(name=name):
                self.assertEqual(self.s.put(name, b"{}").json["type"], kind.split(";")[0])
                self.assertEqual(self.s.get(name).headers["Content-Type"], kind)

    def test_head(self):
        self.s.put("f.txt", b"12345")
        answer = self.client.call("HEAD", self.s.file("f.txt"))
        self.assertEqual((answer.status, answer.body, answer.headers["Content-Length"]), (200, b"", "5"))
        self.assertEqual(self.client.call("HEAD", self.s.file("none")).status, 404)
        self.assertEqual(self.client.call("HEAD", self.s.path).status, 200)
        self.assertEqual(self.client.call("HEAD", self.s.path + "/files").status, 200)
        self.assertEqual(self.client.call("HEAD", "/healthz").status, 200)

    def test_ranges(self):
        self.s.put("f", bytes(range(100)))
        for value, status, body in (("bytes=0-0", 206, bytes([0])), ("bytes=10-19", 206, bytes(range(10, 20))),
                                    ("bytes=90-", 206, bytes(range(90, 100))), ("bytes=-5", 206, bytes(range(95, 100))),
                                    ("bytes=0-1000", 206, bytes(range(100))), ("bytes=-1000", 206, bytes(range(100))),
                                    ("bytes=100-", 416, None), ("bytes=5-4", 200, bytes(range(100))), ("bytes=-0", 416, None),
                                    ("bytes=1-2,4-5", 200, bytes(range(100))), ("lines=1-2", 200, bytes(range(100))),
                                    ("bytes=x-y", 200, bytes(range(100))), ("bytes=", 200, bytes(range(100))),
                                    ("bytes=99999999999999999999999-", 416, None),
                                    ("bytes=18446744073709551615-18446744073709551616", 416, None)):
            with self.subTest(value=value):
                answer = self.s.get("f", headers={"Range": value})
                self.assertEqual(answer.status, status, answer)
                if status == 416:
                    self.assertEqual(answer.headers["Content-Range"], "bytes */100")
                else:
                    self.assertEqual(answer.body, body)
                if status == 206:
                    start = body[0]
                    self.assertEqual(answer.headers["Content-Range"], f"bytes {start}-{body[-1]}/100")

    def test_ranges_of_nothing(self):
        self.s.put("f", b"")
        for value in ("bytes=0-", "bytes=-1", "bytes=0-0"):
            self.assertEqual(self.s.get("f", headers={"Range": value}).status, 200)

    def test_missing(self):
        self.s.put("d/f", b"x")
        for name in ("none", "d/none", "d/f/g"):
            self.assertError(self.s.get(name), 404, "not_found")
        self.assertIn(self.s.get("d").code, ("not_found", "bad_path"))

    def test_last_modified(self):
        self.s.cell("open('old', 'w').close()\nimport os; os.utime('old', (0, 0))")
        self.assertEqual(self.s.get("old").headers["Last-Modified"], "Thu, 01 Jan 1970 00:00:00 GMT")
        self.s.cell("open('odd', 'w').close()\ntry: os.utime('odd', (-10**10, 2**40))\nexcept OSError: pass")
        self.assertEqual(self.s.get("odd").status, 200)
        self.assertEqual(len(self.client.get(self.s.path + "/files").json["data"]), 2)


class NeverServed(api.Case):
    """Links, FIFOs, devices; and files that change under our hands."""

    def setUp(self):
        self.s = self.session()

    def test_links_and_others(self):
        self.s.put("real", b"real")
        cell = self.s.cell("import os, socket\n"
                           "os.symlink('/etc/passwd', 'absolute')\nos.symlink('../../etc/passwd', 'relative')\n"
                           "os.symlink('real', 'inside')\nos.symlink('/proc/self/environ', 'proc')\nos.symlink('/', 'root')\n"
                           "os.symlink('loop', 'loop')\nos.mkfifo('fifo')\nos.mkdir('dir')\nos.symlink('/etc', 'dir/etc')\n"
                           "os.symlink('/proc/1/root', 'dir/r')\n"
                           "s = socket.socket(socket.AF_UNIX); s.bind('sock')\n"
                           "for source in ('/etc/passwd', '/proc/self/status', '/usr/bin/python3'):\n"
                           "    try: os.link(source, 'hard' + str(len(source)))\n"
                           "    except OSError as e: pass\n")
        self.assertEqual(cell["status"], "ok", cell)
        names = ("absolute", "relative", "inside", "proc", "root", "root/etc/passwd", "loop", "fifo", "dir", "dir/etc",
                 "dir/etc/passwd", "dir/r/etc/passwd", "sock", "hard11", "hard17", "hard16", "root/proc/self/environ")
        for name in names:
            with self.subTest(name=name):
                began = time.monotonic()
                self.assertIn(self.s.get(name).code, ("not_found", "bad_path"))
                self.assertLess(time.monotonic() - began, api.SOON)
        self.assertEqual(self.s.files(), ["real"])
        archive = zipfile.ZipFile(io.BytesIO(self.client.get(self.s.path + "/files?archive=zip").body))
        self.assertEqual([n for n in archive.namelist() if not n.endswith("/")], ["real"])

    def test_uploads_do_not_follow(self):
        self.s.cell("import os\nos.mkdir('/tmp/t')\nopen('/tmp/t/x', 'w').write('untouched')\n"
                    "os.symlink('/tmp/t', 'd')\nos.symlink('/tmp/t/x', 'f')\nos.mkfifo('fifo')")
        answer = self.s.put("d/x", b"through")
        self.assertIn(answer.status, (400, 404, 409), answer)
        self.assertIn(self.s.put("f", b"through").status, (200, 201, 400, 404, 409))
        self.assertIn(self.s.put("fifo", b"through").status, (200, 201, 400, 404, 409))
        self.assertEqual(api.result(self.s.cell("open('/tmp/t/x').read(), os.listdir('/tmp/t')")), "('untouched', ['x'])")

    def test_deleting_does_not_follow(self):
        self.s.cell("import os\nos.mkdir('/tmp/t')\nopen('/tmp/t/x', 'w').close()\nos.mkdir('d')\nos.symlink('/tmp/t', 'd/l')\n"
                    "os.symlink('/tmp/t', 'l')")
        self.assertEqual(self.client.delete(self.s.file("d")).status, 204)
        self.client.delete(self.s.file("l/x"))
        self.client.delete(self.s.file("l"))
        self.assertEqual(api.result(self.s.cell("os.listdir('/tmp/t')")), "['x']")

    def test_hard_links_to_ones_own_files(self):
        self.s.cell("import os\nopen('/mnt/data/a', 'w').write('own')\nos.link('a', 'b')")
        self.assertIn(self.s.get("b").status, (200, 404))

    def read_slowly(self, name, act, patience=api.PATIENCE):
        """Act after the headers and the first bytes have come; the rest that comes then, and the length promised."""
        connection, response = self.client.send("GET", self.s.file(name))
        self.addCleanup(connection.close)
        got = response.read(100)
        act()
        connection.sock.settimeout(patience)
        try:
            got += response.read()
        except Exception:  # cut short: that is what it may do
            pass
        return got, int(response.headers["Content-Length"])

    def test_it_shrinks(self):
        self.s.cell("open('f', 'wb').write(bytes(50 << 20))")
        # What is missing never comes, and we do not wait until the server gives us up.
        got, promised = self.read_slowly("f", lambda: self.s.cell("open('f', 'wb').write(b'short')"), patience=3)
        self.assertEqual(promised, 50 << 20)
        self.assertLessEqual(len(got), promised)
        self.assertAnswers()

    def test_it_grows(self):
        self.s.cell("open('f', 'wb').write(bytes(20 << 20))")
        got, promised = self.read_slowly("f", lambda: self.s.cell("open('f', 'ab').write(bytes(20 << 20))"))
        self.assertEqual(len(got), promised)
        self.assertEqual(self.s.get("f", headers={"Range": "bytes=0-9"}).status, 206)

    def test_it_is_deleted_or_becomes_a_link(self):
        self.s.cell("open('f', 'wb').write(b'x' * (20 << 20))")
        got, promised = self.read_slowly("f", lambda: self.s.cell("import os; os.remove('f'); os.symlink('/etc/passwd', 'f')"))
        self.assertEqual(got, b"x" * promised)

    def test_the_session_ends_meanwhile(self):
        self.s.cell("open('f', 'wb').write(bytes(50 << 20))")
        got, promised = self.read_slowly("f", self.s.delete)
        self.assertLessEqual(len(got), promised)
        self.assertAnswers()

    def test_swapped_all_the_time(self):
        self.s.begin("import os, time\nopen('g', 'w').write('good')\nend = time.time() + 2.5\n"
                     "while time.time() < end:\n    os.symlink('/etc/passwd', 'l'); os.rename('l', 's')\n"
                     "    open('n', 'w').write('good'); os.rename('n', 's')")
        end = time.monotonic() + 2
        statuses = set()
        while time.monotonic() < end:
            answer = self.s.get("s")
            statuses.add(answer.status)
            if answer.status == 200:
                self.assertIn(answer.body, (b"good", b""))
        self.assertLessEqual(statuses, {200, 400, 404})


class Delete(api.Case):
    def test_files_and_directories(self):
        session = self.session()
        for name in ("a", "d/a", "d/e/b", "keep"):
            session.put(name, b"x")
        self.assertEqual(self.client.delete(session.file("a")).status, 204)
        self.assertError(self.client.delete(session.file("a")), 404, "not_found")
        self.assertEqual(self.client.delete(session.file("d")).status, 204)
        self.assertEqual(session.files(), ["keep"])


class List(api.Case):
    def test_pages(self):
        session = self.session()
        names = sorted([f"f{i}" for i in range(7)] + ["d/x", "d/y", "e z", "ü"], key=str.encode)
        for name in names:
            session.put(name, b"x")
        self.assertEqual(session.files(), names)
        got, after = [], None
        for _ in range(10):
            path = f"{session.path}/files?limit=3" + (f"&after={urllib.parse.quote(after, safe='')}" if after else "")
            page = self.client.get(path).json
            got += [f["path"] for f in page["data"]]
            after = page["next"]
            if after is None:
                break
        self.assertEqual(got, names)

    def test_one_that_is_gone_between_pages(self):
        session = self.session()
        for name in "abcd":
            session.put(name, b"x")
        page = self.client.get(session.path + "/files?limit=2").json
        self.client.delete(session.file("b"))
        rest = self.client.get(f"{session.path}/files?limit=2&after={urllib.parse.quote(page['next'], safe='')}").json
        self.assertEqual([f["path"] for f in rest["data"]], ["c", "d"])

    def test_bad_queries(self):
        session = self.session()
        for query in ("limit=0", "limit=x", "limit=501", "archive=tar", "archive="):
            with self.subTest(query=query):
                self.assertError(self.client.get(f"{session.path}/files?{query}"), 400, "bad_request")

    def test_five_thousand(self):
        session = self.session()
        session.cell("import os\nfor i in range(5000):\n    open(f'f{i:04}', 'w').close()")
        page = self.client.get(session.path + "/files?limit=500").json
        self.assertEqual(len(page["data"]), 500)
        self.assertEqual(page["data"][-1]["path"], "f0499")
        self.assertEqual(session.cell("open('f2500', 'w').write('x')")["files"][0]["path"], "f2500")

    def test_while_a_cell_runs(self):
        session = self.session()
        later = session.hold()
        self.assertEqual(session.files(), ["begun"])
        session.release()
        later.result()


class Archive(api.Case):
    def test_zip_of_holes(self):
        """A sparse file can be longer than anything that could be sent."""
        session = self.session()
        session.cell("open('sparse', 'wb').truncate(1 << 60)")
        self.assertError(self.client.get(session.path + "/files?archive=zip"), 409, "not_accessible", "holes")
        session.cell("open('sparse', 'wb').truncate(600 << 20)")  # more than the disk, but a few names could have that
        self.assertEqual(self.client.get(session.path + "/files?archive=zip").status, 200)

    def test_zips_at_once(self):
        session = self.session()
        session.cell("import os\nopen('f', 'wb').write(os.urandom(30 << 20))")
        under_way = []
        for _ in range(4):
            connection, response = self.client.send("GET", session.path + "/files?archive=zip")
            self.assertEqual(response.status, 200)
            self.addCleanup(connection.close)
            under_way.append(connection)
        answer = self.client.get(session.path + "/files?archive=zip")
        self.assertError(answer, 429, "too_many_archives")
        self.assertEqual(self.client.get(session.path + "/files").status, 200)
        under_way[0].sock.close()
        under_way[0].close()
        response.close()
        self.assertTrue(api.wait_until(lambda: self.client.get(session.path + "/files?archive=zip").status == 200))

    def test_zip(self):
        session = self.session()
        files = {"a.txt": b"a", "dir/b.bin": os.urandom(300000), "ü 漢/c": b"c", "empty": b"", "q\"": b"x"}
        for name, data in files.items():
            session.put(name, data)
        answer = self.client.get(session.path + "/files?archive=zip")
        self.assertEqual(answer.headers["Content-Type"], "application/zip")
        self.assertRegex(answer.headers["Content-Disposition"], r'^attachment; filename="[\w.-]+\.zip"')
        self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
        archive = zipfile.ZipFile(io.BytesIO(answer.body))
        self.assertIsNone(archive.testzip())
        self.assertEqual({i.filename: archive.read(i) for i in archive.infolist() if not i.is_dir()}, files)

    def test_of_nothing(self):
        answer = self.client.get(self.session().path + "/files?archive=zip")
        self.assertEqual(zipfile.ZipFile(io.BytesIO(answer.body)).namelist(), [])

    def test_names_are_harmless(self):
        session = self.session()
        session.cell("open('a\\\\..\\\\b', 'w').close(); open('C:x', 'w').close(); open('-x', 'w').close()")
        for name in zipfile.ZipFile(io.BytesIO(self.client.get(session.path + "/files?archive=zip").body)).namelist():
            self.assertFalse(name.startswith("/") or ".." in name.split("/"), name)

    def test_a_client_that_leaves(self):
        session = self.session()
        session.cell("import os\nopen('big', 'wb').write(os.urandom(1 << 20) * 60)")
        connection, response = self.client.send("GET", session.path + "/files?archive=zip")
        response.read(1000)
        connection.sock and connection.sock.close()
        response.close()
        connection.close()
        self.assertAnswers()
        self.assertEqual(session.cell("1")["status"], "ok")

    def test_files_that_change_meanwhile(self):
        session = self.session()
        session.begin("import os, time\nend = time.time() + 3\nwhile time.time() < end:\n"
                      "    open('f', 'wb').write(bytes(1 << 20)); open('f', 'wb').close()\n"
                      "    try: os.remove('g')\n    except OSError: open('g', 'w').close()")
        for _ in range(5):
            answer = self.client.get(session.path + "/files?archive=zip")
            self.assertEqual(answer.status, 200)
            self.assertIsNone(zipfile.ZipFile(io.BytesIO(answer.body)).testzip())
