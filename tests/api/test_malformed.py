"""What no honest client sends: each gets a clear 4xx or a closed connection, and the server goes on."""
import json
import random
import re
import socket
import time

import api


class Json(api.Case):
    def test_not_json(self):
        for body in (b"{", b"}", b"nul", b'{"code": "x"', b"{'code': 'x'}", b'{"code": "x",}', b'{"code": "x"} {}', b"\xff",
                     b'{"code": "\xff\xfe"}', b'{"code": "\xc3"}', b'{"code": "\xed\xa0\x80"}', b'{"code": "\\ud800"}',
                     b'{"code": "\\udc00x"}', b'{"code": "\\x41"}', b'{"code": "\x01"}', b"\0", b'{"code"\0: "1"}',
                     b'\xef\xbb\xbf{"code": "1"}', b'{"code": 01}', b'{"code": NaN}', b'{"timeout": 1e999, "code": "1"}',
                     b'{"code": "1", "code": "2"}', "{\"code\": \"1\"}".encode("utf-16"), b"[" * 100000, b'{"a":' * 50000,
                     b"[" * 3000 + b"]" * 3000, b'{"code": "1", "timeout": ' + b"9" * 400 + b"}", b"-", b'"', b"\t\n "):
            with self.subTest(body=body[:40]):
                answer = self.client.post("/v1/run", body)
                self.assertError(answer, 400)
                self.assertIn(answer.code, ("bad_json", "bad_request"))
        self.assertAnswers()

    def test_nesting_in_metadata(self):
        deep = b"1"
        for _ in range(1500):
            deep = b'{"a":' + deep + b"}"
        connection, response = self.client.send("POST", "/v1/sessions", b'{"metadata": {"a": ' + deep + b"}}")
        found = re.search(rb'"id":"([^"]+)"', response.read())  # too deep for Python's reader
        connection.close()
        if found:
            self.client.delete("/v1/sessions/" + found[1].decode())
            self.client.delete("/v1/sessions/" + found[1].decode())
        self.assertIn(response.status, (201, 400))
        self.assertAnswers()

    def test_numbers_at_the_edge(self):
        for number in ("1e308", "1e-320", "9223372036854775807", "9223372036854775808", "-0", "18446744073709551616",
                       "0.0000001", "1" * 300, "4.2e9"):
            for body in (f'{{"limits": {{"memory": {number}}}}}', f'{{"limits": {{"timeout": {number}}}}}',
                         f'{{"limits": {{"cpus": {number}}}}}', f'{{"limits": {{"pids": {number}}}}}',
                         f'{{"limits": {{"disk": {number}}}}}', f'{{"idle_timeout": {number}}}'):
                with self.subTest(body=body[:80]):
                    answer = self.client.post("/v1/sessions", body.encode())
                    if answer.status == 201:
                        self.client.delete(f"/v1/sessions/{answer.json['id']}")
                    self.assertIn(answer.status, (201, 400), answer)

    def test_giant_bodies(self):
        """Those that say so are refused unread; those that do not are cut."""
        for path in ("/v1/sessions", "/v1/run"):
            sock = self.server.connect()
            self.addCleanup(sock.close)
            sock.sendall(self.client.raw("POST", path, f"Content-Length: {10 << 30}"))
            got, _ = api.receive(sock, answers=1)
            status, _, body = api.split_responses(got)[0]
            self.assertEqual((status, json.loads(body)["error"]["code"]), (413, "too_large"))
        try:
            answer = self.client.call("POST", "/v1/sessions", (b" " * 65536 for _ in range(1000)))
            self.assertError(answer, 413, "too_large")
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.assertAnswers()


class Raw(api.Case):
    """Bytes that are hardly HTTP."""

    def send(self, data, answers=1, seconds=api.PATIENCE):
        """[(status, headers, body)], and whether the server closed. It goes on until it does, or for so many answers."""
        sock = self.server.connect()
        self.addCleanup(sock.close)
        try:
            sock.sendall(data)
        except OSError:
            pass
        got, closed = api.receive(sock, seconds, answers)
        if not got.startswith(b"HTTP/"):
            return [], closed, got
        if twice := api.TWICE.match(got):
            got = got[twice.end(1):]
        return api.split_responses(got), closed, got

    def refused(self, data, answers=1):
        """A 4xx, a 501, a 505, or the end of the connection."""
        responses, closed, got = self.send(data, answers)
        if responses:
            self.assertIn(responses[0][0], (400, 401, 403, 404, 405, 411, 413, 414, 415, 421, 431, 501, 505), got[:500])
        else:
            self.assertTrue(closed, "neither an answer nor an end")
        return responses

    def request(self, line=b"POST /v1/run HTTP/1.1", headers=b"", body=b"", host=b"Host: localhost\r\n"):
        token = b"Authorization: Bearer " + self.client.token.encode() + b"\r\n"
        return line + b"\r\n" + host + token + headers + b"\r\n" + body

    def tearDown(self):
        self.assertAnswers()

    def test_lines(self):
        """What may be answered; nothing at all is right where nobody could tell what was asked."""
        for data, wanted in ((b"GET /\r\n", (400,)), (b"GET\r\n\r\n", (400,)), (b"\r\n\r\n\r\n\r\n", (400,)),
                             (b" GET / HTTP/1.1\r\n\r\n", (400,)), (b"GET / HTTP/9.9\r\n\r\n", (400, 505)),
                             (b"GET / HTTP/1.1 extra\r\n\r\n", (400,)), (b"GET  /healthz  HTTP/1.1\r\n\r\n", (400,)),
                             (b"\0\0\0\0\r\n\r\n", (400,)), (b"\x16\x03\x01\x02\x00\x01", (400,)),
                             (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 505)), (b"SSH-2.0-OpenSSH\r\n\r\n", (400,)),
                             (b"\xff" * 1000 + b"\r\n\r\n", (400,))):
            with self.subTest(data=data[:40]):
                responses, closed, got = self.send(data, seconds=2)
                self.assertIn(responses[0][0] if responses else None, (None, *wanted), got[:300])

    def test_other_hosts(self):
        for data in (b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"GET / HTTP/1.1\nHost: evil.example\n\n"):
            with self.subTest(data=data):
                responses, _, got = self.send(data)
                self.assertEqual([r[0] for r in responses], [421], got[:300])

    def test_version_0_9(self):
        self.refused(b"GET /v1/sessions\r\n\r\n")

    def test_version_1_0(self):
        responses, closed, _ = self.send(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", answers=None)
        self.assertEqual(responses[0][0], 200)
        self.assertTrue(closed)

    def test_methods(self):
        for method in (b"get", b"Post", b"BREW", b"PATCH", b"TRACE", b"CONNECT", b"OPTIONS", b"G\0T", b"A" * 5000, b"PROPFIND"):
            with self.subTest(method=method[:10]):
                responses = self.refused(self.request(method + b" /v1/sessions HTTP/1.1"))
                if responses and responses[0][0] == 405:
                    self.assertIn("POST", responses[0][1]["allow"])
                    self.assertEqual(json.loads(responses[0][2])["error"]["code"], "method_not_allowed")

    def test_allow(self):
        for path, wanted in (("/v1/run", {"POST"}), ("/v1/sessions", {"GET", "HEAD", "POST"}),
                             ("/v1/sessions/x/files/y", {"GET", "HEAD", "PUT", "DELETE"}), ("/healthz", {"GET", "HEAD"})):
            answer = self.client.call("PATCH", path)
            self.assertError(answer, 405, "method_not_allowed")
            self.assertEqual({m.strip() for m in answer.headers["Allow"].split(",")} - {"OPTIONS"}, wanted)

    def test_no_such_path(self):
        for path in ("/v1", "/v1/", "/v2/sessions", "/v1/session", "/v1/sessions/", "/v1/sessions/x/nothing", "/etc/passwd", "//",
                     "/v1/sessions/x/cells/1/2", "/%76%31/sessions/x/y/z", "/v1//sessions", "/./healthz", "/v1/../healthz", "/x" * 2000,
                     "/%00", "/healthz/", "/HEALTHZ"):
            with self.subTest(path=path[:40]):
                self.assertError(self.client.get(path), 404, "not_found")

    def test_no_host(self):
        self.refused(b"GET /healthz HTTP/1.1\r\n\r\n")

    def test_two_hosts(self):
        for second in (b"evil.example", b"localhost"):
            responses, _, got = self.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nhost: " + second + b"\r\n\r\n")
            self.assertEqual(responses[0][0], 400, got[:300])

    def test_giant_headers(self):
        for headers in (b"X: " + b"a" * 1000000 + b"\r\n", b"X: y\r\n" * 100000, b"X" * 100000, b"Cookie: " + b"c" * 70000 + b"\r\n"):
            with self.subTest(headers=headers[:10]):
                self.refused(self.request(headers=headers))
        self.refused(self.request(b"GET /" + b"a" * 200000 + b" HTTP/1.1"))

    def test_headers_of_a_few_kilobytes_are_fine(self):
        responses, _, _ = self.send(self.request(b"GET /v1/sessions HTTP/1.1", b"Cookie: " + b"c" * 4000 + b"\r\n"))
        self.assertEqual(responses[0][0], 200)

    def test_header_lines(self):
        for header in (b"NoColon\r\n", b": empty\r\n", b"Bad Name: x\r\n", b"X: a\0b\r\n", b" folded: x\r\n", b"X: a\r\n folded\r\n",
                       b"X\xff: y\r\n", b"X: \xff\r\n", b"X: a\rb\r\n", b"X : y\r\n"):
            with self.subTest(header=header):
                responses, closed, got = self.send(self.request(b"GET /healthz HTTP/1.1", header))
                self.assertTrue(closed or responses)
                if responses:
                    self.assertIn(responses[0][0], (200, 400, 431))

    def test_lengths(self):
        for length in (b"-1", b"abc", b"", b"1e3", b"0x10", b"99999999999999999999999", b"18446744073709551615", b"+5", b"5 5", b"5,5",
                       b"\xff"):
            with self.subTest(length=length):
                self.refused(self.request(headers=b"Content-Length: " + length + b"\r\n", body=b'{"code":"1"}'))

    def test_two_lengths(self):
        self.refused(self.request(headers=b"Content-Length: 12\r\nContent-Length: 5\r\n", body=b'{"code":"1"}'))

    def test_length_and_chunks(self):
        """The classic of smuggling."""
        body = b"0\r\n\r\nGET /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n"
        responses = self.refused(self.request(headers=b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % len(body), body=body), 2)
        self.assertLessEqual(len(responses), 1)

    def test_codings(self):
        for coding in (b"gzip", b"gzip, chunked", b"chunked, gzip", b"identity", b"xchunked", b"chunked, chunked"):
            with self.subTest(coding=coding):
                self.refused(self.request(headers=b"Transfer-Encoding: " + coding + b"\r\n", body=b"0\r\n\r\n"))

    def test_chunks(self):
        good = self.request(headers=b"Connection: close\r\nTransfer-Encoding: chunked\r\n", body=b'c\r\n{"code":"1"}\r\n0\r\n\r\n')
        responses, _, _ = self.send(good)
        self.assertEqual(responses[0][0], 200)
        for body in (b"x\r\n\r\n", b"-1\r\n\r\n", b"ffffffffffffffffff\r\n", b"10000000000000000\r\nx", b"5\r\n{\"cod", b"c\r\n{\"code\":\"1\"}XX0\r\n\r\n",
                     b"0" * 10000, b"1;" + b"e" * 50000 + b"\r\n{\r\n0\r\n\r\n"):
            with self.subTest(body=body[:30]):
                sock = self.server.connect()
                sock.sendall(self.request(headers=b"Transfer-Encoding: chunked\r\n", body=body))
                sock.shutdown(socket.SHUT_WR)
                got, _ = api.receive(sock, 2, answers=1)
                sock.close()
                if got:  # else the connection ends with its time
                    self.assertIn(api.split_responses(got)[0][0], (400, 413, 431))
        before = self.server.cpu_seconds()
        time.sleep(2)
        self.assertLess(self.server.cpu_seconds() - before, 0.6, "it is busy with those who have gone")

    def test_a_chunk_with_an_endless_extension(self):
        sock = self.server.connect()
        self.addCleanup(sock.close)
        sock.sendall(self.request(headers=b"Transfer-Encoding: chunked\r\n", body=b"1;" + b"e" * 50000 + b"\r\n{\r\n0\r\n\r\n"))
        api.receive(sock, 1)
        before = self.server.cpu_seconds()
        time.sleep(3)
        self.assertLess(self.server.cpu_seconds() - before, 0.3, "it is busy with nothing")

    def test_chunks_of_single_bytes_with_extensions_and_trailers(self):
        code = b'{"code":"1"}'
        body = b"".join(b"1;ext=x\r\n%c\r\n" % c for c in code) + b"0\r\nTrailer: x\r\n\r\n"
        responses, _, _ = self.send(self.request(headers=b"Connection: close\r\nTransfer-Encoding: chunked\r\n", body=body))
        self.assertEqual(responses[0][0], 200)

    def test_pipelining(self):
        one = self.request(b"GET /v1/sessions HTTP/1.1")
        run = self.request(headers=b"Content-Length: 15\r\n", body=b'{"code":"1+41"}')
        responses, _, got = self.send(one * 3 + run + one + self.request(b"GET /nothing HTTP/1.1"), answers=6)
        self.assertEqual([r[0] for r in responses], [200, 200, 200, 200, 200, 404], got[-300:])
        self.assertEqual(api.result(json.loads(responses[3][2])), "42")

    def test_pipelining_after_a_refused_body(self):
        """Bytes of a body must never be taken for a request."""
        smuggled = self.request(b"DELETE /v1/sessions/x HTTP/1.1")
        data = b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(smuggled) + smuggled
        responses, _, got = self.send(data + self.request(b"GET /healthz HTTP/1.1"), answers=3)
        self.assertEqual(responses[0][0], 401)
        self.assertTrue(all(status != 404 for status, _, _ in responses), got)

    def test_a_body_where_none_belongs(self):
        responses, _, got = self.send(self.request(b"GET /healthz HTTP/1.1", b"Content-Length: 5\r\n", b"hello")
                                      + self.request(b"GET /healthz HTTP/1.1"), answers=2)
        self.assertIn(responses[0][0], (200, 400))
        self.assertLessEqual({r[0] for r in responses}, {200, 400})

    def test_hangs_up_in_the_middle(self):
        whole = self.request(headers=b"Content-Length: 12\r\n", body=b'{"code":"1"}')
        for cut in range(1, len(whole), 7):
            sock = self.server.connect()
            sock.sendall(whole[:cut])
            sock.close()

    def test_noise(self):
        noise = random.Random(1)
        whole = self.request(headers=b"Content-Length: 12\r\nAccept: text/event-stream\r\n", body=b'{"code":"1"}')
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(noise.randint(1, 8)):
                data[noise.randrange(len(data))] = noise.randrange(256)
            sock = self.server.connect()
            try:
                sock.sendall(bytes(data))
                sock.shutdown(socket.SHUT_WR)
                api.receive(sock, 0.05)
            except OSError:
                pass
            sock.close()

    def test_headers_that_never_end(self):
        sock = self.server.connect()
        self.addCleanup(sock.close)
        sock.sendall(b"GET /healthz HTTP/1.1\r\n")
        try:
            for _ in range(2000):
                sock.sendall(b"X: " + b"y" * 100 + b"\r\n")
        except OSError:
            return
        got, closed = api.receive(sock, answers=1)
        self.assertTrue(closed or got.startswith(b"HTTP/1.1 4"))

    def test_queries(self):
        for query in ("&&&&", "=", "limit", "a=%", "a=%zz", "%00=1", "limit=1&limit=x", "&".join(f"k{i}=v" for i in range(2000)), "\xff"):
            with self.subTest(query=query[:20]):
                raw = b"GET /v1/sessions?" + query.encode("latin-1") + b" HTTP/1.1"
                responses, _, got = self.send(self.request(raw), seconds=2)
                if responses:
                    self.assertIn(responses[0][0], (200, 400, 431, 414), got[:200])
