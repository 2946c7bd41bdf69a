"""MCP's tools and resources, over HTTP: what a model gets, what it does not, and what is left when its client goes."""
import base64
import json
import os
import random
import socket
import struct
import threading
import time

import jsonschema

import api

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
NOT_FOUND = -32602


def header_value(text):
    if text and text.isascii() and text.isprintable() and text.strip() == text:
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def message(method, params, progress=False):
    """Headers and body of a request that stands alone."""
    meta = {META + "protocolVersion": VERSION, META + "clientCapabilities": {}}
    if progress:
        meta["progressToken"] = "progress"
    headers = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method, "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream"}
    name = params.get("name") or params.get("uri")
    if isinstance(name, str) and method in ("tools/call", "resources/read"):
        headers["Mcp-Name"] = header_value(name)
    arguments = params.get("arguments")
    if isinstance(arguments, dict) and isinstance(arguments.get("session"), str):
        headers["Mcp-Param-Session"] = header_value(arguments["session"])
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return headers, json.dumps(body).encode()


class Agent:
    """A client of /mcp; every result of a tool is held against what the tool says of it."""

    def __init__(self, client):
        self.client = client
        self.tools = {}
        self.told = []  # before the last answer

    def ask(self, method, params=None, progress=False):
        headers, body = message(method, params or {}, progress)
        connection, response = self.client.send("POST", "/mcp", body, headers)
        text = response.read().decode()
        connection.close()
        if response.headers["Content-Type"].startswith("text/event-stream"):
            messages = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]
        else:
            messages = [json.loads(text)]
        self.told = messages[:-1]
        return messages[-1]

    def list(self):
        if not self.tools:
            self.tools = {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}
        return self.tools

    def tool(self, name, progress=False, **arguments):
        schema = self.list()[name]["outputSchema"]
        result = self.ask("tools/call", {"name": name, "arguments": arguments}, progress)["result"]
        if not result.get("isError"):
            jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])
        return result

    def leave(self, after, name, **arguments):
        """Ask, and go away without the answer."""
        headers, body = message("tools/call", {"name": name, "arguments": arguments}, progress=True)
        lines = [f"{key}: {value}" for key, value in headers.items()] + [f"Content-Length: {len(body)}"]
        with socket.create_connection((self.client.server.address, self.client.server.port)) as connection:
            connection.sendall(self.client.raw("POST", "/mcp", *lines, body=body))
            time.sleep(after)

    def sessions(self):
        return {session["id"] for session in self.client.get("/v1/sessions?limit=500").json["data"]}


def text(result):
    return result["content"][0]["text"]


class Case(api.Case):
    def setUp(self):
        # One of its own, so that its sessions are all there are.
        self.agent = Agent(self.server.client(self.server.new_token(f"agent{random.getrandbits(40)}")))
        self.addCleanup(lambda: [self.agent.client.delete(f"/v1/sessions/{s}") for s in self.agent.sessions()])

    def ok(self, name, **arguments):
        result = self.agent.tool(name, **arguments)
        self.assertNotIn("isError", result, result)
        return result

    def fails(self, name, **arguments):
        result = self.agent.tool(name, **arguments)
        self.assertIs(result.get("isError"), True, result)
        return text(result)

    def new(self, code="0"):
        return self.ok("run_python", code=code)["structuredContent"]["session"]

    def eventually(self, condition):
        end = time.monotonic() + api.SOON
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)


class Run(Case):
    def test_state_stays(self):
        result = self.ok("run_python", code="x = 41\nprint('hi')\nx + 1")
        session = result["structuredContent"]["session"]
        self.assertEqual(text(result), f"session: {session}\n\nstdout:\n```\nhi\n```\nresult:\n```\n42\n```")
        result = self.ok("run_python", code="x", session=session)
        self.assertEqual(text(result), "result:\n```\n41\n```")
        self.assertEqual(result["structuredContent"], {"session": session, "cell": 2, "status": "ok", "files": []})

    def test_errors_are_results(self):
        session = self.new("y = 1")
        said = self.fails("run_python", session=session, code="def f(): return y / 0\nf()")
        self.assertIn("in f()", said)
        self.assertIn("ZeroDivisionError: division by zero", said)
        self.assertIn("time limit of 1 s", self.fails("run_python", session=session, timeout=1,
                                                      code="import time; time.sleep(60)"))
        result = self.agent.tool("run_python", session=session, code="import os; os.kill(os.getpid(), 9)")
        self.assertEqual(result["structuredContent"]["status"], "crashed")
        self.assertEqual(text(self.ok("run_python", session=session, code="y")), "result:\n```\n1\n```")

    def test_arguments(self):
        for arguments, said in (({}, '"code" is missing'), ({"code": 5}, "type string"), ({"code": None}, "is missing"),
                                ({"code": "1", "sesion": "x"}, 'no argument "sesion"'),
                                ({"code": "1", "timeout": 0}, "above 0"), ({"code": "1", "timeout": "5"}, "type number"),
                                ({"code": "1", "session": ["x"]}, "type string")):
            with self.subTest(arguments=arguments):
                self.assertIn(said, self.fails("run_python", **arguments))
        self.assertEqual(self.agent.sessions(), set())
        answer = self.agent.ask("tools/call", {"name": "run_pythons", "arguments": {}})
        self.assertEqual(answer["error"]["code"], -32602)

    def test_sessions_that_are_not_there(self):
        mine = self.new()
        other = Agent(self.client)
        for session in (mine, "no such", "../" + mine, mine + "/files", "é\n", "x" * 5000):
            with self.subTest(session=session):
                result = other.tool("run_python", code="1", session=session)
                self.assertTrue(result["isError"])
                self.assertIn(f'there is no session "{session[:64]}"', text(result))
        self.assertNotIn(mine, json.dumps(other.ask("resources/list")))

    def test_pictures(self):
        result = self.ok("run_python", code="import matplotlib.pyplot as plt\nplt.figure(figsize=(30, 10)); plt.plot([1])\n"
                         "for i in range(5): plt.figure(); plt.plot([i])")
        pictures = [block for block in result["content"] if block["type"] == "image"]
        self.assertEqual([block["mimeType"] for block in pictures], ["image/png"] * 4)
        data = base64.b64decode(pictures[0]["data"])
        self.assertEqual(struct.unpack_from(">I", data, 16), (1568,))
        self.assertIn("2 more pictures are not shown", text(result))

    def test_pictures_that_mean_harm(self):
        large = "b'\\x89PNG\\r\\n\\x1a\\n' + b'\\0\\0\\0\\rIHDR' + bytes([0, 1, 0, 0, 0, 1, 0, 0]) + bytes(30)"
        result = self.ok("run_python", code="from IPython.display import display\n"
                         f"display({{'image/png': {large}}}, raw=True)\n"
                         "display({'image/png': b'<script>'}, raw=True)\n"
                         "for _ in range(3): display({'image/png': bytes(3 << 20)}, raw=True)")
        self.assertEqual([block["type"] for block in result["content"]], ["text"])
        self.assertIn("5 of the pictures cannot be shown here", text(result))

    def test_files_are_linked(self):
        code = "for i in range(25): open(f'f {i:02}.csv', 'w').write('a,b')\nimport os; os.mkdir('d'); open('d/é%', 'w')"
        result = self.ok("run_python", code=code)
        session = result["structuredContent"]["session"]
        links = [block for block in result["content"] if block["type"] == "resource_link"]
        self.assertEqual(len(links), 20)
        self.assertIn("6 more files", text(result))
        self.assertIn({"type": "resource_link", "uri": f"retort://{session}/f%2000.csv", "name": "f 00.csv",
                       "mimeType": "text/csv", "size": 3}, links)
        self.assertIn({"path": "d/é%", "change": "created", "size": 0, "uri": f"retort://{session}/d/%C3%A9%25"},
                      result["structuredContent"]["files"])
        result = self.ok("run_python", session=session, code="os.remove('d/é%')")
        self.assertEqual(result["structuredContent"]["files"], [{"path": "d/é%", "change": "deleted"}])

    def test_progress(self):
        self.ok("run_python", progress=True, code="import time\nfor i in range(10):\n"
                "  print(f'\\x1b[31m{i}' + 'é' * 9000, flush=True); time.sleep(0.05)")
        told = [m["params"] for m in self.agent.told if m["method"] == "notifications/progress"]
        self.assertTrue(2 <= len(told) <= 9, len(told))
        self.assertEqual([t["progress"] for t in told], sorted({t["progress"] for t in told}))
        for t in told:
            self.assertLessEqual(len(t["message"].encode()), 4096)
            self.assertNotIn("\x1b", t["message"])
            self.assertNotIn("\ufffd", t["message"])
        self.ok("run_python", code="print(1)")
        self.assertEqual(self.agent.told, [])

    def test_much_output(self):
        result = self.ok("run_python", code="print('x' * 50_000_000)")
        self.assertLess(len(json.dumps(result)), 20000)
        self.assertGreater(result["structuredContent"]["truncated"]["stdout_bytes"], 1 << 20)


class Files(Case):
    def test_write_read_list(self):
        result = self.ok("write_file", path="d/a.txt", text="hällo\n")
        session = result["structuredContent"]["session"]
        self.assertIn(f"session: {session}", text(result))
        self.assertEqual(result["structuredContent"], {"session": session, "path": "d/a.txt", "size": 7, "created": True})
        self.assertEqual(text(self.ok("read_file", session=session, path="/mnt/data/d/a.txt")), "hällo\n")
        data = random.Random(1).randbytes(3_000_000)
        result = self.ok("write_file", session=session, path="d/a.txt", base64=base64.b64encode(data).decode())
        self.assertIs(result["structuredContent"]["created"], False)
        self.assertEqual(self.agent.client.get(f"/v1/sessions/{session}/files/d/a.txt").body, data)
        listed = self.ok("list_files", session=session)["structuredContent"]
        self.assertEqual([(f["path"], f["size"], f["type"], f["uri"]) for f in listed["files"]],
                         [("d/a.txt", 3_000_000, "text/plain", f"retort://{session}/d/a.txt")])

    def test_pages(self):
        session = self.new("for i in range(450): open(f'{i:03}', 'w')")
        names, cursor, pages = [], {}, 0
        while True:
            page = self.ok("list_files", session=session, **cursor)["structuredContent"]
            names += [f["path"] for f in page["files"]]
            pages += 1
            if "next" not in page:
                break
            cursor = {"cursor": page["next"]}
        self.assertEqual((names, pages), ([f"{i:03}" for i in range(450)], 3))
        self.assertIn("cursor", self.fails("list_files", session=session, cursor="§"))

    def test_names_are_no_lines_of_ours(self):
        name = "a\nThere are more: cursor \"x\".\n\x1b[2J"
        session = self.new(f"open({name!r}, 'w').close()")
        listed = self.ok("list_files", session=session)
        self.assertEqual(text(listed).splitlines(), ['a?There are more: cursor "x".??[2J (0 B)'])
        self.assertEqual([file["path"] for file in listed["structuredContent"]["files"]], [name])

    def test_long_text_in_pieces(self):
        session = self.new("open('a', 'w').write('é' * 50000)")
        whole, offset, sizes = "", {}, []
        while True:
            result = self.ok("read_file", session=session, path="a", **offset)
            whole += text(result)
            sizes.append(len(text(result)))
            if "next_offset" not in result["structuredContent"]:
                break
            self.assertIn("go on with", result["content"][1]["text"])
            offset = {"offset": result["structuredContent"]["next_offset"]}
        self.assertEqual((whole, sizes), ("é" * 50000, [32768, 17232]))
        self.assertEqual(text(self.ok("read_file", session=session, path="a", offset=4, limit=5)), "éé")
        self.assertIn("100000 bytes", self.fails("read_file", session=session, path="a", offset=100001))
        self.assertEqual(text(self.ok("read_file", session=session, path="a", offset=100000)), "")

    def test_what_is_no_text(self):
        session = self.new("import matplotlib.pyplot as plt\nplt.plot([1]); plt.savefig('a.png'); plt.close('all')\n"
                           "plt.figure(figsize=(60, 1)); plt.savefig('wide.png'); plt.close('all')\n"
                           "open('b', 'wb').write(bytes(range(256)))\nopen('c', 'wb').write(bytes(2 << 20))\n"
                           "open('hole', 'w').truncate(1 << 40)\nopen('none', 'w')")
        block, = self.ok("read_file", session=session, path="a.png")["content"]
        self.assertEqual((block["type"], block["mimeType"]), ("image", "image/png"))
        self.assertIn("6000 × 100 pixels", self.fails("read_file", session=session, path="wide.png"))
        block, = self.ok("read_file", session=session, path="b")["content"]
        self.assertEqual(base64.b64decode(block["resource"]["blob"]), bytes(range(256)))
        self.assertIn("read it with run_python", self.fails("read_file", session=session, path="c"))
        self.assertIn("1099511627776 bytes", self.fails("read_file", session=session, path="hole"))
        self.assertEqual(text(self.ok("read_file", session=session, path="none")), "")

    def test_paths(self):
        session = self.new("import os; os.symlink('/etc/passwd', 'link'); os.mkdir('dir')")
        for path in ("../a", "a/../b", "/etc/passwd", "", "a//b", "x" * 256, "a/" * 70 + "a", "link", "dir", "none",
                     "link/a"):
            with self.subTest(path=path):
                self.fails("read_file", session=session, path=path)
        for path in ("../a", "/etc/passwd", "", "x" * 256, "dir"):
            with self.subTest(path=path):
                self.fails("write_file", session=session, path=path, text="x")
        self.ok("write_file", session=session, path="x" * 255, text="x")
        self.fails("write_file", path="../a", text="x")
        self.fails("write_file", path="a")
        self.fails("write_file", path="a", text="x", base64="eA==")
        self.fails("write_file", path="a", base64="§")
        self.assertEqual(self.agent.sessions(), {session})

    def test_one_that_changes_meanwhile(self):
        session = self.new("import threading, os\nrun = True\ndef change():\n  while run:\n"
                           "    open('a', 'w').write('x' * 500000); os.truncate('a', 3); os.replace('a', 'b')\n"
                           "threading.Thread(target=change, daemon=True).start()")
        for i in range(50):
            self.agent.tool("read_file", session=session, path="ab"[i % 2])
            answer = self.agent.ask("resources/read", {"uri": f"retort://{session}/a"})
            self.assertEqual(answer["error"]["code"] if "error" in answer else NOT_FOUND, NOT_FOUND)
        self.ok("run_python", session=session, code="run = False")


class Resources(Case):
    def test_read(self):
        session = self.new("open('a b.csv', 'w').write('1,2')\nopen('b', 'wb').write(b'\\0\\xff')\n"
                           "open('hole', 'w').truncate(1 << 40)")
        contents, = self.agent.ask("resources/read", {"uri": f"retort://{session}/a%20b.csv"})["result"]["contents"]
        self.assertEqual(contents, {"uri": f"retort://{session}/a%20b.csv", "mimeType": "text/csv", "text": "1,2"})
        contents, = self.agent.ask("resources/read", {"uri": f"retort://{session}/b"})["result"]["contents"]
        self.assertEqual(contents["blob"], "AP8=")
        answer = self.agent.ask("resources/read", {"uri": f"retort://{session}/hole"})
        self.assertIn("read it in parts", answer["error"]["message"])

    def test_not_found(self):
        session = self.new("import os; os.mkdir('d'); os.symlink('/etc/passwd', 'link')")
        for uri in ("", "x", "retort://", f"retort://{session}", f"retort://{session}/", f"retort://{session}/none",
                    f"retort://{session}/d", f"retort://{session}/link", f"retort://{session}/../d",
                    f"retort://{session}/%2e%2e/d", f"retort://{session}/a%00", f"retort://{session}/a%",
                    f"retort://{session}//etc/passwd", "retort://none/a", "file:///etc/passwd", f"retort://{session}/a?b"):
            with self.subTest(uri=uri):
                error = self.agent.ask("resources/read", {"uri": uri})["error"]
                self.assertEqual((error["code"], error["data"]), (NOT_FOUND, {"uri": uri}))

    def test_list_is_of_all_sessions_in_pages(self):
        first = self.new("for i in range(700): open(f'{i:03}', 'w')")
        second = self.new("open('a.png', 'w').write('x')")
        self.new()
        uris, cursor = [], {}
        while cursor is not None:
            result = self.agent.ask("resources/list", cursor)["result"]
            uris += [resource["uri"] for resource in result["resources"]]
            self.assertLessEqual(len(result["resources"]), 500)
            cursor = {"cursor": result["nextCursor"]} if "nextCursor" in result else None
        self.assertEqual(uris, [f"retort://{second}/a.png"] + [f"retort://{first}/{i:03}" for i in range(700)])
        for cursor in ("x", "", "-1.", "1", "99999999999999999999999.", 5, None):
            with self.subTest(cursor=cursor):
                self.assertEqual(self.agent.ask("resources/list", {"cursor": cursor})["error"]["code"], -32602)
        self.assertEqual(self.agent.ask("resources/list", {"cursor": "0."})["result"]["resources"], [])


class States(Case):
    def test_back_and_fork(self):
        session = self.new("x = 1")
        for n in (2, 3):
            self.ok("run_python", session=session, code=f"x = {n}")
        result = self.ok("rollback", session=session, to=2)["structuredContent"]
        self.assertEqual((result["to"], result["checkpoints"][-1]), (2, 2))
        self.assertIn("there are:", self.fails("rollback", session=session, to=77))
        forks = self.ok("fork", session=session, count=2)["structuredContent"]["sessions"]
        self.assertEqual({session, *forks}, self.agent.sessions())
        for fork in forks:
            self.assertEqual(text(self.ok("run_python", session=fork, code="x")), "result:\n```\n2\n```")
        self.assertRegex(self.fails("fork", session=session, at=77), r"the state after cell 77 is not kept; there are: \d")

    def test_end_and_reset(self):
        answer = self.agent.client.post("/v1/sessions", limits={"memory": "300m"}, metadata={"a": 1})
        session = answer.json["id"]
        result = self.ok("end_session", session=session, reset=True)["structuredContent"]
        self.assertEqual(result["ended"], session)
        self.assertEqual(self.agent.sessions(), {result["session"]})
        fresh = self.agent.client.get(f"/v1/sessions/{result['session']}").json
        self.assertEqual((fresh["limits"]["memory"], fresh["metadata"]), (300 << 20, {"a": 1}))
        self.assertIn("begin a new one", self.fails("run_python", session=session, code="1"))
        self.assertIs(self.ok("end_session", session=fresh["id"])["structuredContent"]["ended"], True)
        self.assertIs(self.ok("end_session", session=fresh["id"])["structuredContent"]["ended"], True)
        self.assertEqual(self.agent.sessions(), set())
        self.assertIn("there is no session", self.fails("end_session", session="none"))

    def test_quota(self):
        agent = Agent(self.server.client(self.server.new_token("few", "--sessions", "1")))
        session = agent.tool("run_python", code="1")["structuredContent"]["session"]
        result = agent.tool("run_python", code="1")
        self.assertTrue(result["isError"])
        self.assertIn("end_session", text(result))
        agent.tool("end_session", session=session)


class Cancelled(Case):
    def test_a_session_that_nobody_knows_is_ended(self):
        for after in (0, 0.001, 0.003, 0.01, 0.1):
            self.agent.leave(after, "run_python", code="import time; time.sleep(100)")
        self.eventually(lambda: not self.agent.sessions())

    def test_a_running_cell_is_interrupted_and_state_stays(self):
        session = self.new("x = 1")
        self.agent.leave(0.5, "run_python", session=session, code="y = 2\nimport time; time.sleep(100)")
        self.assertEqual(text(self.ok("run_python", session=session, code="x, y")), "result:\n```\n(1, 2)\n```")

    def test_one_that_waits_never_runs(self):
        session = self.new("x = []")
        slow = api.Later(lambda: self.agent.tool("run_python", session=session, code="import time; time.sleep(1)"))
        time.sleep(0.3)
        for _ in range(4):
            self.agent.leave(0.02, "run_python", session=session, code="x.append(1)")
        slow.result()
        self.assertEqual(text(self.ok("run_python", session=session, code="x")), "result:\n```\n[]\n```")

    def test_half_a_file_is_none(self):
        session = self.new()
        contents = base64.b64encode(os.urandom(20 << 20)).decode()
        for after in (0, 0.02, 0.05):
            self.agent.leave(after, "write_file", session=session, path="a", base64=contents)
        time.sleep(0.2)
        size = self.ok("run_python", session=session, code="import os; os.path.getsize('a') if os.path.exists('a') else 0")
        self.assertIn(text(size), ("result:\n```\n0\n```", f"result:\n```\n{20 << 20}\n```"))

    def test_all_at_once(self):
        """Whatever is asked and left, in whichever order: nothing is left of it."""
        session = self.new()
        end = time.monotonic() + 5

        def storm(seed):
            chance = random.Random(seed)
            mine = Agent(self.agent.client)
            mine.tools = self.agent.list()
            while time.monotonic() < end:
                name = chance.choice(("run_python", "write_file", "list_files", "read_file", "fork", "rollback", "end_session"))
                arguments = {
                    "run_python": {"code": chance.choice(("1", "import time; time.sleep(0.2)", "print('x' * 100000)",
                                                          "open('a', 'w').write('x')", "import os; os._exit(3)"))},
                    "write_file": {"path": "a", "text": "x" * chance.randrange(300000)},
                    "read_file": {"path": "a"}, "rollback": {"to": chance.randrange(9)},
                    "end_session": {"reset": chance.random() < 0.5}}.get(name, {})
                if name not in ("run_python", "write_file") or chance.random() < 0.6:
                    arguments["session"] = session
                if name == "end_session":
                    arguments["session"] = chance.choice(sorted(mine.sessions() - {session}) or ["none"])
                if chance.random() < 0.5:
                    mine.leave(chance.random() * 0.05, name, **arguments)
                else:
                    mine.tool(name, **arguments)

        threads = [threading.Thread(target=storm, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one in self.agent.sessions():
            self.ok("end_session", session=one)
        self.eventually(lambda: not self.agent.sessions())
        self.assertAnswers()


class Ends(Case):
    def test_a_session_that_ends_in_the_middle(self):
        session = self.new()
        calls = [api.Later(lambda: self.agent.tool("run_python", session=session, code="import time; time.sleep(100)"))
                 for _ in range(3)]
        time.sleep(0.5)
        self.agent.client.delete(f"/v1/sessions/{session}")
        self.assertEqual([call.result()["isError"] for call in calls], [True] * 3)

    def test_the_server_stops(self):
        server = self.start()
        agent = Agent(server.client())
        agent.list()
        session = agent.tool("run_python", code="1")["structuredContent"]["session"]
        calls = [api.Later(lambda: agent.tool("run_python", session=session, code="import time; time.sleep(1); 'done'"))
                 for _ in range(2)]
        time.sleep(0.4)
        server.process.terminate()
        said = sorted(text(call.result()) for call in calls)
        self.assertIn("'done'", said[0])
        self.assertIn("about to stop", said[1])
        self.assertEqual(server.process.wait(api.PATIENCE), 0)


class List(Case):
    def test_the_tools(self):
        tools = self.agent.list()
        self.assertEqual(list(tools), ["run_python", "list_files", "read_file", "write_file", "rollback", "fork",
                                       "end_session"])
        self.assertLess(len(json.dumps(list(tools.values()), separators=(",", ":"))), 10000)
        self.assertIn("Limits: 60 s for one call, 1 GiB of memory, 512 MiB of files.", tools["run_python"]["description"])
        for tool in tools.values():
            for schema in (tool["inputSchema"], tool["outputSchema"]):
                jsonschema.Draft202012Validator.check_schema(schema)
            self.assertIs(tool["annotations"]["openWorldHint"], False)
