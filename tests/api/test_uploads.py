"""Files into the workspace: raw and as forms, whole or not at all, with names of every sort, and more than fits."""
import hashlib
import json
import os
import time
import unicodedata
import urllib.parse

import api


class Put(api.Case):
    def setUp(self):
        self.s = self.session()

    def test_new_and_replaced(self):
        answer = self.s.put("a.csv", b"x,y\n1,2\n")
        self.assertEqual(answer.status, 201, answer)
        self.assertEqual((answer.json["path"], answer.json["size"], answer.json["type"]),
                         ("a.csv", 8, "text/csv"))
        self.assertLess(abs(api.moment(answer.json["modified_at"]) - time.time()), 30)
        answer = self.s.put("a.csv", b"x")
        self.assertEqual((answer.status, answer.json["size"]), (200, 1))
        self.assertEqual(api.result(self.s.cell("open('a.csv').read()")), "'x'")

    def test_empty(self):
        self.assertEqual(self.s.put("empty", b"").status, 201)
        self.assertEqual(self.s.get("empty").body, b"")
        answer = self.client.call("PUT", self.s.file("empty2"), None)
        self.assertIn(answer.status, (201, 411), answer)

    def test_chunked(self):
        pieces = iter([b"one ", b"two ", b"three"])
        self.assertEqual(self.client.call("PUT", self.s.file("f"), pieces).json["size"], 13)
        self.assertEqual(self.s.get("f").body, b"one two three")

    def test_any_type_is_taken(self):
        for kind in ("application/json", "text/html", "multipart/form-data; boundary=x", "", "nonsense"):
            self.assertIn(self.s.put("f", b"{", headers={"Content-Type": kind}).status, (200, 201))

    def test_the_code_may_write_it(self):
        self.s.put("d/f", b"x")
        cell = self.s.cell("open('d/f', 'a').write('y')\nopen('d/g', 'w').write('z')\nopen('d/f').read()")
        self.assertEqual((cell["status"], api.result(cell)), ("ok", "'xy'"), cell)

    def test_a_large_one(self):
        data = os.urandom(1 << 20) * 40
        self.assertEqual(self.s.put("big", data).status, 201)
        self.assertEqual(api.result(self.s.cell("import hashlib\nhashlib.sha256(open('big', 'rb').read()).hexdigest()")),
                         repr(hashlib.sha256(data).hexdigest()))
        self.assertEqual(self.s.get("big").body, data)

    def test_while_a_cell_runs(self):
        later = self.s.begin("import time, os\nwhile not os.path.exists('go'): time.sleep(0.05)\nprint(open('go').read())")
        self.assertEqual(self.s.put("go", b"gone").status, 201)
        self.assertEqual(api.text(later.result().json), "gone\n")

    def test_a_directory_is_in_the_way(self):
        self.s.put("d/f", b"x")
        self.assertError(self.s.put("d", b"x"), 400, "bad_path")
        self.assertError(self.s.put("d/f/g", b"x"), 400, "bad_path")
        self.assertEqual(self.s.get("d/f").body, b"x")

    def test_it_appears_whole(self):
        """Whoever looks sees the old one or the new one."""
        old, new = b"o" * 100000, b"n" * 3000000
        self.s.put("f", old)
        sock = self.server.connect()
        self.addCleanup(sock.close)
        sock.sendall(self.client.raw("PUT", self.s.file('f'), f"Content-Length: {len(new)}"))
        for i in range(0, len(new), 500000):
            sock.sendall(new[i:i + 500000])
            if i + 500000 < len(new):
                self.assertEqual(self.s.get("f").body, old)
                self.assertEqual(self.s.files(), ["f"])
                self.assertEqual(api.result(self.s.cell("import os; os.path.getsize('f'), os.listdir()")),
                                 "(100000, ['f'])")
        got, _ = api.receive(sock, answers=1)
        self.assertEqual(api.split_responses(got)[0][0], 200)
        self.assertEqual(self.s.get("f").body, new)

    def test_half_an_upload_leaves_nothing(self):
        sock = self.server.connect()
        sock.sendall(self.client.raw("PUT", self.s.file('half'), "Content-Length: 1000000") + b"x" * 500000)
        time.sleep(0.3)
        sock.close()
        time.sleep(0.3)
        self.assertError(self.s.get("half"), 404, "not_found")
        self.assertEqual(self.s.files(), [])
        self.assertEqual(api.result(self.s.cell("import os; os.listdir()")), "[]")

    def test_two_uploads_of_one_name(self):
        laters = [api.Later(lambda c=c: self.s.put("f", c * 2000000)) for c in (b"a", b"b", b"c")]
        self.assertTrue(all(later.result().status in (200, 201) for later in laters))
        body = self.s.get("f").body
        self.assertEqual((len(body), len(set(body))), (2000000, 1))

    def test_expect_continue(self):
        sock = self.server.connect()
        self.addCleanup(sock.close)
        sock.sendall(self.client.raw("PUT", self.s.file('f'), "Expect: 100-continue", "Content-Length: 3"))
        self.assertIn(b"100 Continue", sock.recv(1000))
        sock.sendall(b"abc")
        got, _ = api.receive(sock, answers=1)
        self.assertEqual(api.split_responses(got)[0][0], 201)


class TooMuch(api.Case):
    def announced(self, session, length, sent=b"", chunked=False):
        """A PUT of which only the beginning is sent; its answer, and whether the connection ended."""
        sock = self.server.connect()
        self.addCleanup(sock.close)
        how = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {length}"
        sock.sendall(self.client.raw("PUT", session.file('big'), how) + sent)
        got, closed = api.receive(sock, answers=1)
        return (api.split_responses(got) or [None])[0], closed

    def test_two_gigabytes_announced(self):
        session = self.session()
        began = time.monotonic()
        (status, headers, body), closed = self.announced(session, 2 << 30)
        self.assertEqual((status, json.loads(body)["error"]["code"]), (413, "no_space"))
        self.assertIn("workspace", json.loads(body)["error"]["message"])
        self.assertTrue(closed or headers.get("connection", "").lower() == "close")
        self.assertLess(time.monotonic() - began, api.SOON)
        self.assertEqual(session.files(), [])

    def test_with_expect(self):
        """curl asks first; it must not be told to go on."""
        session = self.session()
        sock = self.server.connect()
        self.addCleanup(sock.close)
        sock.sendall(self.client.raw("PUT", session.file('big'), "Expect: 100-continue", f"Content-Length: {2 << 30}"))
        got, _ = api.receive(sock, answers=1)
        self.assertNotIn(b"100 Continue", got)
        self.assertEqual(api.split_responses(got)[0][0], 413)

    def test_absurd_lengths(self):
        session = self.session()
        for length in (1 << 40, (1 << 63) - 1):
            (status, _, body), _ = self.announced(session, length)
            self.assertEqual(status, 413, body)
        self.assertAnswers()

    def test_chunked_over_the_limit(self):
        session = self.session(limits={"disk": "4m"})
        answer = None
        try:
            answer = self.client.call("PUT", session.file("big"), (bytes(65536) for _ in range(400)))
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while we were still sending
        if answer:
            self.assertError(answer, 413, "no_space")
        self.assertEqual(session.files(), [])
        self.assertEqual(session.put("small", b"x").status, 201)

    def test_chunked_over_the_limit_is_told(self):
        """One who sends it all gets the reason."""
        session = self.session(limits={"disk": "1m"})
        sock = self.server.connect()
        self.addCleanup(sock.close)
        sock.sendall(self.client.raw("PUT", session.file('big'), "Transfer-Encoding: chunked"))
        for _ in range(100):
            sock.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
        sock.sendall(b"0\r\n\r\n")
        got, _ = api.receive(sock, answers=1)
        status, _, body = api.split_responses(got)[0]
        self.assertEqual((status, json.loads(body)["error"]["code"]), (413, "no_space"))

    def test_a_full_workspace(self):
        session = self.session(limits={"disk": "1m"})
        self.assertEqual(session.put("a", bytes(700 << 10)).status, 201)
        self.assertError(session.put("b", bytes(700 << 10)), 413, "no_space")
        self.assertEqual(session.files(), ["a"])
        self.assertEqual(session.get("a").status, 200)
        self.assertEqual(self.client.delete(session.file("a")).status, 204)
        self.assertEqual(session.put("b", bytes(700 << 10)).status, 201)

    def test_too_many_files(self):
        session = self.session(limits={"files": 20})
        statuses = [session.put(f"f{i}", b"").status for i in range(25)]
        self.assertEqual(statuses[0], 201)
        self.assertEqual(statuses[-1], 413)
        self.assertEqual(session.cell("1")["status"], "ok")


NAMES = ["plain.txt", "with space", "dir/sub/file", "quo\"te's", "new\nline", "tab\tcr\r", "ü", "漢字.csv", "😀",
         unicodedata.normalize("NFD", "é"), "x" * 255, "ü" * 127, "%41", "a+b&c=d;e", "#hash?query", "back\\slash", "-rf",
         "~", "a:b", "\x01\x7f", ".hidden", "...", " ", "a/..b/c", "CON", "a'; DROP TABLE cells; --", "<script>", "\u202egpj.exe"]


class Names(api.Case):
    def test_every_sort(self):
        session = self.session()
        for name in NAMES:
            with self.subTest(name=name):
                data = name.encode()
                answer = session.put(name, data)
                self.assertEqual(answer.status, 201, answer)
                self.assertEqual(answer.json["path"], name)
                self.assertEqual(session.get(name).body, data)
        self.assertEqual(sorted(session.files()), sorted(NAMES))
        cell = session.cell("import os\nsorted(os.path.relpath(os.path.join(d, f)) for d, _, fs in os.walk('.') for f in fs)")
        self.assertEqual(api.result(cell) and eval(api.result(cell)), sorted(NAMES))
        for name in NAMES:
            self.assertEqual(self.client.delete(session.file(name)).status, 204, name)
        self.assertEqual(session.files(), [])

    def test_not_utf8(self):
        session = self.session()
        name = b"latin-\xe9\xff"
        path = session.path + "/files/" + urllib.parse.quote_from_bytes(name)
        answer = self.client.put(path, b"x")
        self.assertIn(answer.status, (201, 400), answer)
        if answer.status == 201:
            self.assertEqual(self.client.get(path).body, b"x")
            self.assertEqual(session.files(), ["latin-\ufffd\ufffd"])
            self.assertEqual(self.client.delete(path).status, 204)
        session.cell("open(b'raw-\\xe9', 'w').close()")
        self.assertEqual(session.files(), ["raw-\ufffd"])
        self.assertEqual(self.client.get(session.path + "/files/raw-%e9").status, 200)
        self.assertEqual(self.client.get(session.path + "/files?archive=zip").status, 200)

    def test_an_encoded_slash_is_a_slash(self):
        session = self.session()
        self.assertEqual(self.client.put(session.path + "/files/a%2Fb", b"x").json["path"], "a/b")
        self.assertEqual(session.get("a/b").body, b"x")

    def test_a_plus_is_a_plus(self):
        session = self.session()
        self.assertEqual(self.client.put(session.path + "/files/a+b", b"x").json["path"], "a+b")

    def test_refused(self):
        session = self.session()
        for raw in ("..", "../x", "a/../../x", "a/..", "./a", "a/./b", "a//b", "/a", "%2e%2e/x", "%2e%2e%2fx", "a/%2e%2e",
                    "%2fetc%2fpasswd", "a%00b", "%00", "a/", "a%2f", "x" * 256, "a/" * 100 + "b", "%zz", "%4", "%",
                    "/".join(["y" * 200] * 30)):
            for method in ("PUT", "GET", "DELETE"):
                with self.subTest(raw=raw[:30], method=method):
                    answer = self.client.call(method, f"{session.path}/files/{raw}", b"x" if method == "PUT" else None)
                    self.assertError(answer, 400, "bad_path")
        self.assertEqual(session.files(), [])
        self.assertEqual(session.cell("import os; os.listdir('/mnt')")["status"], "ok")

    def test_the_empty_name_is_the_list(self):
        session = self.session()
        self.assertIn(self.client.get(session.path + "/files/").status, (200, 400, 404))
        self.assertIn(self.client.put(session.path + "/files/", b"x").status, (400, 404, 405))


class Form(api.Case):
    def setUp(self):
        self.s = self.session()

    def post(self, body, boundary="XX", kind=None):
        return self.client.post(self.s.path + "/files", body,
                                headers={"Content-Type": kind or f"multipart/form-data; boundary={boundary}"})

    def part(self, disposition, data=b"x", more=b""):
        return b"--XX\r\nContent-Disposition: " + disposition + b"\r\n" + more + b"\r\n" + data + b"\r\n"

    def test_files(self):
        body = (self.part(b'form-data; name="file"; filename="a.csv"', b"1,2\r\n--X\r\n3", b"Content-Type: text/csv\r\n")
                + self.part(b'form-data; name="note"', b"not a file")
                + self.part(b'form-data; name="file"; filename="dir/b"', b"") + b"--XX--\r\n")
        answer = self.post(body)
        self.assertEqual(answer.status, 201, answer)
        self.assertEqual([(f["path"], f["size"]) for f in answer.json["data"]], [("a.csv", 11), ("dir/b", 0)])
        self.assertEqual(self.s.get("a.csv").body, b"1,2\r\n--X\r\n3")
        self.assertEqual(self.s.files(), ["a.csv", "dir/b"])

    def test_names(self):
        for raw, name in ((b'filename="a \\"b\\".txt"', 'a "b".txt'), (b'filename="%22x%0A"', '"x\n'),
                          ('filename="ü漢.txt"'.encode(), "ü漢.txt"), (b"filename=plain", "plain"),
                          (b"filename=\"fallback\"; filename*=UTF-8''%E2%82%AC.txt", "€.txt")):
            with self.subTest(raw=raw):
                answer = self.post(self.part(b'form-data; name="f"; ' + raw) + b"--XX--\r\n")
                self.assertEqual(answer.status, 201, answer)
                self.assertEqual(answer.json["data"][0]["path"], name)
                self.assertEqual(self.s.get(name).body, b"x")

    def test_names_that_lead_out(self):
        for raw in (b"../x", b"/etc/x", b"a/../../x", b"", b".", b"a//b", b"y" * 256):
            with self.subTest(raw=raw[:10]):
                answer = self.post(self.part(b'form-data; name="f"; filename="' + raw + b'"') + b"--XX--\r\n")
                self.assertError(answer, 400)
        self.assertEqual(self.s.files(), [])

    def test_curl_sends_a_large_one(self):
        data = os.urandom(1 << 20) * 20
        answer = self.post(self.part(b'form-data; name="f"; filename="big"', data) + b"--XX--\r\n")
        self.assertEqual(answer.json["data"][0]["size"], len(data))
        self.assertEqual(self.s.get("big").body, data)

    def test_malformed(self):
        whole = self.part(b'form-data; name="f"; filename="a"') + b"--XX--\r\n"
        for body in (b"", b"--XX", b"--XX--\r\n", b"nonsense", whole[:-6], whole[:20], whole.replace(b"XX", b"YY"),
                     self.part(b"form-data") + b"--XX--\r\n", b"--XX\r\n" + b"A: b\r\n" * 5000 + b"\r\nx\r\n--XX--\r\n",
                     b"--XX\r\n\r\nx\r\n--XX--\r\n", b"\0" * 1000,
                     self.part(b'form-data; name="f"; filename="a\0b"') + b"--XX--\r\n"):
            with self.subTest(body=body[:40], length=len(body)):
                self.assertError(self.post(body), 400)
        self.assertEqual(self.s.files(), [])
        for kind in ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=" + "x" * 500):
            with self.subTest(kind=kind[:40]):
                self.assertIn(self.post(whole, kind=kind).status, (400, 415))
        for kind in ("multipart/mixed; boundary=XX", "application/json", "text/plain"):
            with self.subTest(kind=kind):
                self.assertError(self.post(whole, kind=kind), 415, "unsupported_media_type")
        self.assertAnswers()

    def test_too_many_parts(self):
        answer = self.post(self.part(b'form-data; name="f"', b"") * 1500 + b"--XX--\r\n")
        self.assertIn(answer.status, (400, 413), answer)

    def test_over_the_workspace(self):
        self.s = self.session(limits={"disk": "1m"})
        body = self.part(b'form-data; name="f"; filename="ok"') + self.part(b'form-data; name="f"; filename="big"',
                                                                         bytes(3 << 20)) + b"--XX--\r\n"
        try:
            self.assertError(self.post(body), 413, "no_space")
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.assertNotIn("big", self.s.files())

    def test_in_single_bytes(self):
        body = self.part(b'form-data; name="f"; filename="slow"', b"\r\n--X\r\n-\r\n--XY") + b"--XX--\r\n"
        sock = self.server.connect()
        self.addCleanup(sock.close)
        sock.sendall(self.client.raw("POST", self.s.path + "/files", "Content-Type: multipart/form-data; boundary=XX", f"Content-Length: {len(body)}"))
        for byte in body:
            sock.sendall(bytes([byte]))
            time.sleep(0.001)
        got, _ = api.receive(sock, answers=1)
        self.assertEqual(api.split_responses(got)[0][0], 201, got)
        self.assertEqual(self.s.get("slow").body, b"\r\n--X\r\n-\r\n--XY")
