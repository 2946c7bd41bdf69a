"""What no honest client sends to /mcp: each gets the right error, and the server goes on."""
import base64
import json
import socket
import unittest

import api
import wire
from wire import HEADER, METHOD, PARAMS, PARSE, REQUEST, VERSION

NOT_JSON = (b"", b"{", b"nul", b'{"jsonrpc": "2.0"', b"{'a': 1}", b"\xff", b'"\xc3"', b"\0", b'{"a": 1} {}', b"[" * 100_000,
            b'{"a":' * 50_000, b'{"a": NaN}', b'{"id": 1, "id": 2}', b'\xef\xbb\xbf{}', '{"a": 1}'.encode("utf-16"))
NO_MESSAGES = (1, "x", None, True, {}, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 1}, {"jsonrpc": "1.0", "id": 1, "method": "ping"},
               {"id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 1, "method": 7}, {"jsonrpc": "2.0", "id": {}, "method": "ping"},
               {"jsonrpc": "2.0", "id": [1], "method": "ping"}, {"jsonrpc": "2.0", "id": True, "method": "ping"},
               {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, {"jsonrpc": "2.0", "id": None, "method": "ping"},
               {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 3}, {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]})


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = api.shared()
        cls.http = wire.Http(cls.server)

    def tearDown(self):
        """It still answers, and no session was left."""
        answer = self.http.post(wire.request("tools/list"))
        self.assertEqual(answer.status, 200, answer)
        self.assertIn("tools", answer.message["result"])

    def assertError(self, answer, status, code, id=None):
        wanted = status if isinstance(status, tuple) else (status,)
        self.assertIn(answer.status, wanted, answer)
        self.assertEqual(answer.error, code, answer)
        self.assertEqual(answer.message["jsonrpc"], "2.0")
        self.assertTrue(answer.message["error"]["message"], answer)
        self.assertEqual(answer.message.get("id"), id, answer)

    def run_python(self, code, **arguments):
        answer = self.http.post(wire.run_python(code, **arguments))
        self.assertEqual(answer.status, 200, answer)
        return answer.message["result"]


class Messages(Case):
    def test_not_json(self):
        for body in NOT_JSON:
            with self.subTest(body=body[:30]):
                answer = self.http.post(body)
                self.assertIn(answer.status, (400, 413), answer)
                self.assertIn(answer.error, (PARSE, REQUEST), answer)

    def test_no_messages(self):
        for body in NO_MESSAGES:
            with self.subTest(body=body):
                answer = self.http.post(json.dumps(body).encode())
                self.assertEqual(answer.status, 400, answer)
                self.assertIn(answer.error, (REQUEST, PARAMS), answer)

    def test_batches(self):
        """Only one revision had them."""
        two = [wire.old("ping", id=1), wire.old("ping", id=2)]
        self.assertError(self.http.post([wire.request("tools/list"), wire.request("tools/list", id=2)]), 400, REQUEST)
        self.assertError(self.http.post(two, self.http.handshake()), 400, REQUEST)
        self.assertError(self.http.post([], self.http.handshake("2025-03-26")), 400, REQUEST)
        answer = self.http.post(two, self.http.handshake("2025-03-26"))
        self.assertEqual(answer.status, 200, answer)
        found = json.loads(answer.body) if answer.headers["Content-Type"].startswith("application/json") else wire.events(answer.body)
        found = [m for each in found for m in (each if isinstance(each, list) else [each])]
        self.assertEqual(sorted(m["id"] for m in found), [1, 2])

    def test_a_batch_of_long_answers(self):
        """They wait for one another: what is too much together is told so, one by one."""
        made = self.http.post(wire.run_python("open('a', 'wb').write(bytes(3 << 20))")).message["result"]
        uri = f"retort://{made['structuredContent']['session']}/a"
        batch = [wire.old("resources/read", {"uri": uri}, id=i) for i in range(8)]
        for accept in ("application/json", "text/event-stream"):
            with self.subTest(accept=accept):
                answer = self.http.post(batch, self.http.handshake("2025-03-26") | {"Accept": accept})
                found = json.loads(answer.body) if accept == "application/json" else wire.events(answer.body)
                self.assertEqual(sorted(m["id"] for m in found), list(range(8)))
                self.assertEqual({m["error"]["code"] for m in found if "error" in m}, {-32000})
                self.assertEqual(sum("result" in m for m in found), 3)
                self.assertLess(len(answer.body), 17 << 20)

    def test_unknown_methods(self):
        for method in ("no/such", "", "initialize", "ping", "logging/setLevel", "resources/subscribe", "tools/call2", "x" * 10_000):
            with self.subTest(method=method[:20]):
                message = wire.request(method)
                answer = self.http.post(message, {"Mcp-Method": method} if len(method) < 1000 and method else {"Mcp-Method": "x"})
                if len(method) < 1000 and method:
                    self.assertError(answer, 404, METHOD, 1)
                else:
                    self.assertEqual(answer.status, 400, answer)
        session = self.http.handshake()
        for method in ("no/such", "server/discover", "subscriptions/listen"):
            with self.subTest(method=method, era="old"):
                self.assertError(self.http.post(wire.old(method, {}), session), (200, 404), METHOD, 1)

    def test_missing_parameters(self):
        for method, params in (("tools/call", {}), ("tools/call", {"name": 7}), ("tools/call", {"name": "no_such_tool", "arguments": {}}), ("resources/read", {}), ("resources/read", {"uri": 7}),
                               ("tools/list", {"cursor": "not one of ours"}), ("resources/list", {"cursor": 7}), ("subscriptions/listen", {})):
            with self.subTest(method=method, params=params):
                self.assertError(self.http.post(wire.request(method, params)), (200, 400), PARAMS, 1)

    def test_ids(self):
        """They come back as they were."""
        for id in (0, -1, 7, 2**53 - 1, 1794000000000, "", "x", "1", "ü\u2028", "x" * 100):
            with self.subTest(id=str(id)[:20]):
                self.assertEqual(self.http.post(wire.request("tools/list", id=id)).message["id"], id)

    def test_arguments_of_no_kind(self):
        """Something that a model can correct, or the client: either may be told."""
        for arguments in ([1], "x", 7, None):
            with self.subTest(arguments=arguments):
                message = self.http.post(wire.request("tools/call", {"name": "run_python", "arguments": arguments})).message
                self.assertTrue(message["error"]["code"] == PARAMS if "error" in message else message["result"]["isError"], message)

    def test_long_ids(self):
        answer = self.http.post(wire.request("tools/list", id="x" * 100_000))
        self.assertIn(answer.status, (200, 400), answer)

    def test_meta(self):
        full = wire.meta()["_meta"]
        for name in (wire.META + "protocolVersion", wire.META + "clientCapabilities"):
            message = wire.request("tools/list", {"_meta": {k: v for k, v in full.items() if k != name}})
            with self.subTest(without=name):
                self.assertError(self.http.post(message), 400, PARAMS, 1)
        for more in ({wire.META + "clientCapabilities": 7}, {wire.META + "clientCapabilities": []}):
            with self.subTest(more=more):
                self.assertError(self.http.post(wire.request("tools/list", {"_meta": full | more})), 400, PARAMS, 1)
        self.assertEqual(self.http.post(wire.request("tools/list", {"_meta": 7})).status, 400)

    def test_notifications_and_responses(self):
        for message in (wire.request("notifications/cancelled", {"requestId": 99}), wire.request("notifications/no/such"),
                        wire.request("notifications/cancelled", {"requestId": {}})):
            del message["id"]
            with self.subTest(message=message["method"]):
                answer = self.http.post(message)
                self.assertIn(answer.status, (202, 400), answer)
        session = self.http.handshake()
        for message in ({"jsonrpc": "2.0", "id": 77, "result": {}}, {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "x"}}):
            answer = self.http.post(message, session)
            self.assertIn(answer.status, (202, 400, 404), answer)

    def test_giant_messages(self):
        sock = self.server.connect()
        self.addCleanup(sock.close)
        sock.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.server.token}\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {10 << 30}\r\n\r\n".encode())
        got, _ = api.receive(sock, answers=1)
        self.assertEqual(api.split_responses(got)[0][0], 413)
        many = wire.request("tools/call", {"name": "run_python", "arguments": {"code": "1", "a": [0] * 3_000_000}})
        answer = self.http.post(many)
        self.assertIn(answer.status, (200, 400, 413), answer)
        big = self.run_python("len('''" + "x" * (8 << 20) + "''')")
        self.assertIn(str(8 << 20), big["content"][0]["text"])


class Headers(Case):
    def test_tokens(self):
        for token in (None, "Bearer wrong", "Bearer", "Basic eDp5", f"bearer-{self.server.token}"):
            with self.subTest(token=token):
                headers = {"Authorization": token} if token else {}
                for method in ("POST", "GET", "DELETE"):
                    answer = self.http.post(wire.request("tools/list") if method == "POST" else None, headers, method=method,
                                            drop=() if token else ("Authorization",))
                    self.assertEqual(answer.status, 401, answer)
                    self.assertTrue(answer.headers["WWW-Authenticate"].startswith("Bearer"), answer)

    def test_origins(self):
        own = f"{self.server.address}:{self.server.port}"
        for origin, status in (("http://evil.example", 403), ("null", 403), ("file://", 403), (f"http://{own}", 200),
                               ("http://127.0.0.1.evil.example", 403)):
            with self.subTest(origin=origin):
                self.assertEqual(self.http.post(wire.request("tools/list"), {"Origin": origin}).status, status)
                if status == 403:
                    self.assertEqual(self.http.post(None, {"Origin": origin}, method="GET").status, status)
        self.assertIn(self.http.post(wire.request("tools/list"), {"Host": "evil.example"}).status, (403, 421))

    def test_content_types(self):
        """Nothing that a page can send without being asked for leave."""
        for kind in ("text/plain", "multipart/form-data; boundary=x", "application/xml", "application/x-www-form-urlencoded", "application/jsonx"):
            with self.subTest(kind=kind):
                self.assertEqual(self.http.post(wire.request("tools/list"), {"Content-Type": kind}).status, 415)
        self.assertEqual(self.http.post(wire.request("tools/list"), drop=("Content-Type",)).status, 415)
        self.assertEqual(self.http.post(wire.request("tools/list"), {"Content-Type": "application/json; charset=utf-8"}).status, 200)

    def test_accept(self):
        for accept in ("*/*", "application/*, text/*", "application/json;q=0.5, text/event-stream"):
            self.assertEqual(self.http.post(wire.request("tools/list"), {"Accept": accept}).status, 200)
        for accept in ("text/html", "", "application/json", "text/event-stream"):
            self.assertIn(self.http.post(wire.request("tools/list"), {"Accept": accept}).status, (200, 400, 406))

    def test_methods(self):
        for method in ("PUT", "PATCH"):
            answer = self.http.post(wire.request("tools/list"), method=method)
            self.assertEqual(answer.status, 405, answer)
            self.assertIn("POST", answer.headers["Allow"])
        self.assertIn(self.http.post(None, method="GET").status, (400, 405))
        self.assertIn(self.http.post(None, method="DELETE").status, (400, 405))

    def test_versions(self):
        message = wire.request("tools/list", {"_meta": wire.meta()["_meta"] | {wire.META + "protocolVersion": "2031-01-01"}})
        answer = self.http.post(message, {"MCP-Protocol-Version": "2031-01-01"})
        self.assertError(answer, 400, VERSION, 1)
        data = answer.message["error"]["data"]
        self.assertEqual(data["requested"], "2031-01-01")
        self.assertIn(wire.MODERN, data["supported"])
        self.assertError(self.http.post(message, {"MCP-Protocol-Version": wire.MODERN}), 400, HEADER, 1)
        self.assertError(self.http.post(wire.request("tools/list"), {"MCP-Protocol-Version": wire.LEGACY}), 400, HEADER, 1)
        self.assertError(self.http.post(wire.request("tools/list"), drop=("MCP-Protocol-Version",)), 400, HEADER, 1)
        session = self.http.handshake()
        self.assertEqual(self.http.post(wire.old("ping"), session | {"MCP-Protocol-Version": "1999-01-01"}).status, 400)

    def test_mirrored(self):
        """Nothing runs when a header and the message disagree."""
        session = self.run_python("n = 0")["structuredContent"]["session"]
        message = wire.run_python("n += 1", session=session)
        wrapped = "=?base64?" + base64.b64encode(session.encode()).decode() + "?="
        for headers in ({"Mcp-Method": "tools/list"}, {"Mcp-Name": "list_files"}, {"Mcp-Name": "RUN_PYTHON"}, {"Mcp-Param-Session": "x"},
                        {"Mcp-Param-Session": "=?base64?!?="}, {"Mcp-Param-Session": ""}):
            with self.subTest(headers=headers):
                self.assertError(self.http.post(message, headers), 400, HEADER, 1)
        for missing in ("Mcp-Method", "Mcp-Name", "Mcp-Param-Session"):
            with self.subTest(missing=missing):
                self.assertError(self.http.post(message, drop=(missing,)), 400, HEADER, 1)
        absent = wire.run_python("1")
        self.assertError(self.http.post(absent, {"Mcp-Param-Session": session}), 400, HEADER, 1)
        for good in (session, wrapped, f"  {session}  "):
            answer = self.http.post(message, {"Mcp-Param-Session": good, "Mcp-Name": "=?base64?" + base64.b64encode(b"run_python").decode() + "?="})
            self.assertEqual(answer.status, 200, answer)
        self.assertIn("3", self.run_python("n", session=session)["content"][0]["text"])


class Sessions(Case):
    """Of the protocol, in the old era."""

    def test_ended(self):
        session = self.http.handshake()
        self.assertEqual(self.http.post(wire.old("ping"), session).message["result"], {})
        self.assertIn(self.http.post(None, session, method="DELETE").status, (200, 204))
        for method, body in (("POST", wire.old("ping")), ("DELETE", None), ("GET", None)):
            self.assertEqual(self.http.post(body, session, method=method).status, 404)

    def test_unknown(self):
        for id in ("no-such", "\x7f", "x" * 5000):
            with self.subTest(id=id[:10]):
                self.assertIn(self.http.post(wire.old("ping"), {"Mcp-Session-Id": id}).status, (400, 404, 431))
        self.assertEqual(self.http.post(wire.old("ping")).status, 400)

    def test_of_another(self):
        session = self.http.handshake()
        stranger = {"Authorization": f"Bearer {self.server.new_token('mcp-stranger')}"}
        self.assertEqual(self.http.post(wire.old("tools/list"), session | stranger).status, 404)
        self.assertEqual(self.http.post(None, session | stranger, method="DELETE").status, 404)
        python = self.run_python("secret = 1")["structuredContent"]["session"]
        answer = self.http.post(wire.run_python("secret", session=python), stranger)
        self.assertTrue(answer.message["result"]["isError"], answer)

    def test_unknown_version(self):
        answer = self.http.post(wire.initialize("1999-01-01"))
        self.assertEqual(answer.message["result"]["protocolVersion"], wire.LEGACY)
        for version in ("2025-06-18", "2025-03-26"):
            self.assertEqual(self.http.post(wire.initialize(version)).message["result"]["protocolVersion"], version)

    def test_many(self):
        """The longest idle go first; nobody is turned away."""
        for _ in range(100):
            last = self.http.handshake()
        self.assertEqual(self.http.post(wire.old("ping"), last).status, 200)


class Gone(Case):
    def test_client_leaves(self):
        """Closing the connection is cancellation: the cell ends, its state stays."""
        session = self.run_python("kept = 1")["structuredContent"]["session"]
        message = wire.run_python("kept = 2\nimport time\nprint('begun', flush=True)\ntime.sleep(100)\nkept = 3", session=session)
        message["params"]["_meta"]["progressToken"] = "t"
        connection, response = self.http.send(message)
        self.assertTrue(response.headers["Content-Type"].startswith("text/event-stream"))
        while b"begun" not in (line := response.readline()):
            self.assertTrue(line, "the stream ended")
        connection.sock.shutdown(socket.SHUT_RDWR)
        response.close()
        connection.close()
        result = self.run_python("('kept', kept)", session=session)
        self.assertIn("('kept', 2)", result["content"][0]["text"])

    def test_nothing_is_left(self):
        """A session that nobody was told of ends with the call that made it."""
        native = self.server.client()

        def sessions():
            return {s["id"] for s in native.get("/v1/sessions?limit=500").json["data"] if s["status"] != "ended"}

        before = sessions()
        message = wire.run_python("import time\nprint('begun', flush=True)\ntime.sleep(100)")
        message["params"]["_meta"]["progressToken"] = 0
        connection, response = self.http.send(message)
        while b"begun" not in (line := response.readline()):
            self.assertTrue(line, "the stream ended")
        self.assertEqual(len(sessions() - before), 1)
        connection.sock.shutdown(socket.SHUT_RDWR)
        response.close()
        connection.close()
        self.assertTrue(api.wait_until(lambda: sessions() <= before), "its session is still there")
