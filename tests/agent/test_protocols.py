"""The protocols against the scripted server: what the one says the other understands, both ways, and the server
refuses what the real ones refuse."""
import copy
import http.client
import json
import os
import subprocess
import time
import unittest
import urllib.parse

from model_protocols import PROTOCOLS
from model_server import ModelServer

PROBE = os.path.join(os.environ.get("RETORT_BUILD", "build"), "tests/agent/probe")
PICTURE = {"type": "image/png", "data": "iVBORw0KGgo="}
CODE = 'print("é 😀\\n", \'"\')\nx = "\\\\u00e9"\n'


def probe(*args, data):
    done = subprocess.run([PROBE, *args], input=data, capture_output=True, timeout=60, check=True)
    return json.loads(done.stdout)


def post(server, path, headers, body):
    """Status, headers, and what came of the body before the connection broke."""
    where = urllib.parse.urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    data, broken = b"", False
    try:
        while piece := answer.read1(65536):
            data += piece
    except (http.client.HTTPException, ConnectionError):
        broken = True
    connection.close()
    broken = broken or (answer.length or 0) > 0
    return answer.status, dict(answer.getheaders()), data, broken


class Conversation:
    """A talk with a server, held by the protocols' own code."""

    def __init__(self, server, protocol, stream=True, tools=True, sees=True, name="scripted"):
        self.server, self.protocol, self.stream = server, protocol, stream
        self.wish = {"protocol": protocol, "name": name, "base": server.url + PROTOCOLS[protocol].base,
                     "key": server.key, "tools": tools, "sees": sees, "stream": stream}
        self.talk = []

    def request(self):
        made = probe("request", data=json.dumps(self.wish | {"talk": self.talk}).encode())
        headers = dict(line.split(": ", 1) for line in made["headers"])
        return PROTOCOLS[self.protocol].base + made["path"], headers, made["body"]

    def ask(self):
        self.status, self.headers, data, self.broken = post(self.server, *self.request())
        if self.status != 200:
            return json.loads(data)
        stream = "event-stream" in self.headers["Content-Type"]
        return probe("reply", self.protocol, "stream" if stream else "whole", data=data)

    def say(self, text):
        self.talk.append({"role": "user", "text": text})
        return self.go_on()

    def go_on(self):
        reply = self.ask()
        if "message" in reply:
            self.talk.append(reply["message"])
        return reply

    def results(self, *texts, **more):
        calls = self.talk[-1]["calls"]
        assert len(calls) == len(texts)
        self.talk.append({"role": "results", "results": [
            {"id": c["id"], "name": "python", "text": t, **more} for c, t in zip(calls, texts)]})
        return self.go_on()


def each(test):
    """With every protocol, streaming and not."""
    def all_of_them(self):
        for protocol in PROTOCOLS:
            for stream in (True, False):
                with self.subTest(protocol=protocol, stream=stream):
                    test(self, protocol, stream)
    return all_of_them


def codes(reply):
    return [json.loads(c["arguments"])["code"] for c in reply["message"]["calls"]]


class Understood(unittest.TestCase):
    def no_faults(self, server):
        self.assertEqual(server.faults, [])

    @each
    def test_a_conversation_with_calls_results_and_pictures(self, protocol, stream):
        script = [{"text": "Let me see.", "calls": [CODE, "y"], "usage": [5, 6]},
                  {"calls": ["z"], "thinking": "Hm, that failed.", "expect": "KeyError"},
                  {"calls": ["zz"], "thinking": "Once more.", "expect": "nothing"},
                  {"text": "It is **4**, grüße 😀.", "expect": "four"},
                  {"text": "Yes.", "expect": "^Really", "expect_anywhere": r"(?s)Q1.*You are a test|You are a test.*Q1"}]
        with ModelServer(script, protocol) as server:
            c = Conversation(server, protocol, stream)
            first = c.say("Q1")
            self.assertEqual(codes(first), [CODE, "y"])
            self.assertEqual(first["heard"], ["Let me see.", CODE, "y"])
            self.assertEqual(first["tokens"], [5, 6])
            c.results("KeyError: 'x'", "1", failed=True, pictures=[PICTURE, PICTURE])
            c.results("nothing")
            answer = c.results("four")
            self.assertEqual(answer["message"]["text"], "It is **4**, grüße 😀.")
            self.assertEqual(c.say("Really?")["message"]["text"], "Yes.")
            self.no_faults(server)
            self.assertEqual(len(server.requests), 5)

    @each
    def test_a_model_without_tools(self, protocol, stream):
        script = [{"no_tools": True, "text": "So:\n```python\nx = 1\n```\n"}, {"text": "One.", "expect": "R1"}]
        with ModelServer(script, protocol) as server:
            c = Conversation(server, protocol, stream)
            self.assertIn("does not support tools", str(c.say("Q")))
            self.assertEqual(c.status, 400)
            c.wish["tools"] = False
            self.assertEqual(codes(c.go_on()), ["x = 1\n"])
            self.assertEqual(c.results("R1", pictures=[PICTURE])["message"]["text"], "One.")
            self.assertEqual(len(server.faults), 1)

    @each
    def test_a_model_that_does_not_see(self, protocol, stream):
        with ModelServer([{"calls": ["x"]}, {"no_pictures": True, "text": "ok"}], protocol) as server:
            c = Conversation(server, protocol, stream)
            c.say("Q")
            self.assertIn("image", str(c.results("R", pictures=[PICTURE])))
            c.wish["sees"] = False
            self.assertEqual(c.go_on()["message"]["text"], "ok")

    def test_a_conversation_that_changes_models(self):
        """Every model takes over from every other, in the middle of its calls, thoughts and all."""
        for first in PROTOCOLS:
            for second in PROTOCOLS:
                with self.subTest(first=first, second=second):
                    script = [{"text": "a", "calls": ["x", "y"], "thinking": "hm"}, {"text": "b", "thinking": "hm"},
                              {"text": "c", "expect_anywhere": "R2"}]
                    with ModelServer(script) as server:
                        c = Conversation(server, first)
                        c.say("Q")
                        d = Conversation(server, second, name="gemini-3-scripted")
                        d.talk = c.talk
                        d.results("R1", "R2")
                        c.say("Q2")
                        self.no_faults(server)
                        self.assertEqual(c.talk[-1]["text"], "c")

    def test_arguments_in_pieces_of_any_size(self):
        for protocol in PROTOCOLS:
            for pieces in (1, 2, 3, 5, 100):
                for utf16 in (False, True):
                    with self.subTest(protocol=protocol, pieces=pieces, utf16=utf16):
                        reply = {"text": "a 😀 b", "calls": [CODE, {"arguments": json.dumps(
                            {"code": CODE}, ensure_ascii=False)}], "pieces": pieces, "utf16": utf16}
                        with ModelServer([reply], protocol) as server:
                            got = Conversation(server, protocol).say("Q")
                        self.assertEqual(got["heard"], ["a 😀 b", CODE, CODE])
                        self.assertEqual(codes(got), [CODE, CODE])

    @each
    def test_ends(self, protocol, stream):
        with ModelServer([{"text": "x", "stop": "cut"}, {"stop": "refused"}], protocol) as server:
            c = Conversation(server, protocol, stream)
            self.assertTrue(c.say("Q")["cut"])
            self.assertTrue(c.say("Q")["refused"])
            self.no_faults(server)

    @each
    def test_what_breaks_off_is_no_reply(self, protocol, stream):
        faults = [{"malformed": True}, {"cut_after": {"bytes": 150}}]
        if stream:
            faults += [{"cut_after": 3}, {"cut_after": 3, "cleanly": True}, {"error": "Overloaded"},
                       {"raw": "data: nonsense\n\n"}, {"raw": ""}]
        for fault in faults:
            with self.subTest(fault=fault), ModelServer([{"text": "Let me see. " * 9, "calls": ["x"], **fault}],
                                                        protocol) as server:
                c = Conversation(server, protocol, stream)
                self.assertIn("error", c.say("Q"))
                self.assertEqual(c.broken, "cut_after" in fault and not fault.get("cleanly"))

    @each
    def test_json_although_a_stream_was_asked_for(self, protocol, stream):
        with ModelServer([{"text": "x", "calls": ["y"], "whole": True}], protocol) as server:
            self.assertEqual(codes(Conversation(server, protocol, stream).say("Q")), ["y"])


class Server(unittest.TestCase):
    """What the tests of others rely on."""

    def test_errors_in_the_shape_of_the_provider(self):
        for protocol in PROTOCOLS:
            with ModelServer([{"status": 429, "retry_after": 1}, {"status": 500}, {"text": "x"}], protocol) as server:
                c = Conversation(server, protocol)
                self.assertIn("scripted 429", c.say("Q")["error"]["message"])
                self.assertEqual((c.status, c.headers["Retry-After"]), (429, "1"))
                c.go_on()
                self.assertEqual(c.status, 500)
                self.assertEqual(c.go_on()["message"]["text"], "x")
                self.assertIn("the script is over", str(c.say("Q")))
                self.assertEqual([f["why"].split(": ")[-1] for f in server.faults], ["the script is over"])

    def test_a_wrong_key(self):
        for protocol in PROTOCOLS:
            with ModelServer([{"text": "x"}], protocol) as server:
                c = Conversation(server, protocol)
                for key in ("other", None):
                    c.wish["key"] = key
                    c.say("Q")
                    self.assertEqual(c.status, 401)

    def test_what_is_expected(self):
        with ModelServer([{"text": "x", "expect": "Q[12]", "expect_not": "Q3"}, {"text": "y", "loop": True}],
                         "chat") as server:
            c = Conversation(server, "chat")
            self.assertIn("expect", str(c.say("Q")))
            self.assertEqual(c.status, 400)
            self.assertIn("expect_not", str(c.say("Q2 Q3")))
            self.assertEqual(len(server.faults), 2)
            c.talk = []
            c.say("Q2")
            for _ in range(3):
                self.assertEqual(c.say("Q")["message"]["text"], "y")

    def test_time(self):
        with ModelServer([{"text": "abc" * 20, "slow": 50}, {"text": "x", "hang": 0.3}, {"text": "x", "hang": 60}],
                         "chat") as server:
            c = Conversation(server, "chat")
            for least in (0.25, 0.3):
                began = time.monotonic()
                c.say("Q")
                self.assertGreater(time.monotonic() - began, least)

    def test_what_it_passes_for(self):
        def get(server, path):
            where = urllib.parse.urlsplit(server.url)
            connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        with ModelServer([{"text": "x"}], pretends="ollama", key=None) as server:
            self.assertEqual(get(server, "/api/tags")[1]["models"][0]["name"], "scripted:latest")
            self.assertEqual(get(server, "/props")[0], 404)
            self.assertEqual(get(server, "/v1/models")[1]["data"][0]["id"], "scripted")
            Conversation(server, "chat").say("Q")
            self.assertEqual(get(server, "/requests")[1][0]["body"]["model"], "scripted")
            self.assertEqual(get(server, "/faults")[1], [])
        with ModelServer([], pretends="llamacpp") as server:
            self.assertEqual([get(server, p)[0] for p in ("/props", "/api/tags")], [200, 404])

    def test_on_its_own(self):
        process = subprocess.Popen([os.path.join(os.path.dirname(__file__), "model_server.py"), "-"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            process.stdin.write('[{"text": "hello"}]')
            process.stdin.close()
            where = urllib.parse.urlsplit(process.stdout.readline().strip())
            connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
            connection.request("GET", "/v1/models")
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


class Refused(unittest.TestCase):
    """A server that takes anything would prove nothing: what is sound is taken, and each of these changes refused."""

    def sound(self, protocol):
        with ModelServer([{"text": "a", "calls": ["x", "y"], "thinking": "hm"}, {"text": "b"}], protocol) as server:
            c = Conversation(server, protocol)
            c.say("Q")
            c.results("R1", "R2", pictures=[PICTURE])
            self.assertEqual(server.faults, [])
            return c.request()

    def check(self, protocol, changes):
        path, headers, body = self.sound(protocol)
        body[next(m for m in ("messages", "input", "contents") if m in body)].pop()  # what was answered last
        with ModelServer([{"text": "ok", "loop": True}], protocol, key=None) as server:
            self.assertEqual(post(server, path, headers, body)[0], 200, server.faults)
            for name, change in changes.items():
                with self.subTest(protocol=protocol, change=name):
                    wrong, sent = copy.deepcopy(body), dict(headers)
                    change(wrong, sent)
                    status, _, data, _ = post(server, path, sent, wrong)
                    self.assertEqual(status, 400)
                    self.assertIn("message", json.loads(data)["error"])

    def test_chat(self):
        def at(i):
            return lambda b: b["messages"][i]
        # system, user, assistant with two calls, two results, pictures
        self.check("chat", {
            "no model": lambda b, h: b.pop("model"),
            "unknown member": lambda b, h: b.update(max_output_tokens=1),
            "options without a stream": lambda b, h: b.pop("stream"),
            "no result": lambda b, h: b["messages"].pop(4),
            "results in another place": lambda b, h: b["messages"].insert(3, {"role": "user", "content": "x"}),
            "result of nothing": lambda b, h: at(4)(b).update(tool_call_id="other"),
            "arguments that are no JSON": lambda b, h: at(2)(b)["tool_calls"][0]["function"].update(arguments="{"),
            "arguments that are an object": lambda b, h: at(2)(b)["tool_calls"][0]["function"].update(arguments={}),
            "a picture in a result": lambda b, h: at(3)(b).update(content=[{"type": "image_url"}]),
            "no base64": lambda b, h: at(5)(b)["content"][1]["image_url"].update(url="data:image/png;base64,?"),
            "no content": lambda b, h: at(1)(b).update(content=None),
            "two systems": lambda b, h: b["messages"].append({"role": "system", "content": "x"}),
            "the model's nothing": lambda b, h: b["messages"].insert(2, {"role": "assistant", "content": None}),
            "the model last": lambda b, h: b["messages"].append({"role": "assistant", "content": "x"}),
        })

    def test_responses(self):
        def kind(b, k):
            return next(i for i in b["input"] if i["type"] == k)
        self.check("responses", {
            "no instructions": lambda b, h: b.pop("instructions"),
            "no store": lambda b, h: b.pop("store"),
            "unknown member": lambda b, h: b.update(max_tokens=1),
            "a strict schema": lambda b, h: b["tools"][0].update(strict=True),
            "no result": lambda b, h: b["input"].remove(kind(b, "function_call_output")),
            "result of nothing": lambda b, h: kind(b, "function_call_output").update(call_id="other"),
            "thoughts of the server's": lambda b, h: kind(b, "reasoning").pop("encrypted_content"),
            "thoughts alone": lambda b, h: b["input"].append(kind(b, "reasoning")),
            "an output's text": lambda b, h: kind(b, "message")["content"][0].update(type="output_text"),
        })

    def test_messages(self):
        self.check("messages", {
            "no version": lambda b, h: h.pop("anthropic-version"),
            "no max_tokens": lambda b, h: b.pop("max_tokens"),
            "no tools": lambda b, h: b.pop("tools"),
            "twice the user": lambda b, h: b["messages"].append({"role": "user", "content": [{"type": "text",
                                                                                            "text": "x"}]}),
            "no result": lambda b, h: b["messages"][2]["content"].pop(0),
            "text before results": lambda b, h: b["messages"][2]["content"].insert(0, {"type": "text", "text": "x"}),
            "an empty block": lambda b, h: b["messages"][0]["content"].append({"type": "text", "text": " "}),
            "an id with a colon": lambda b, h: b["messages"][1]["content"][-1].update(id="a:0"),
            "no signature": lambda b, h: b["messages"][1]["content"][0].pop("signature"),
            "arguments that are text": lambda b, h: b["messages"][1]["content"][-1].update(input="{}"),
            "five breakpoints": lambda b, h: b["system"].extend(b["system"] * 4),
        })

    def test_gemini(self):
        self.check("gemini", {
            "unknown member": lambda b, h: b.update(system="x"),
            "no role": lambda b, h: b["contents"][0].pop("role"),
            "twice the user": lambda b, h: b["contents"].append(b["contents"][0]),
            "no result": lambda b, h: b["contents"][2]["parts"].pop(0),
            "a result of another name": lambda b, h: b["contents"][2]["parts"][0]["functionResponse"].update(name="x"),
            "a result of another id": lambda b, h: b["contents"][2]["parts"][0]["functionResponse"].update(id="x"),
            "a result that is text": lambda b, h: b["contents"][2]["parts"][0]["functionResponse"].update(response="x"),
            "two things in a part": lambda b, h: b["contents"][2]["parts"][0].update(text="x"),
            "a part of nothing": lambda b, h: b["contents"][0]["parts"].append({}),
        })

    def test_thoughts_that_were_lost(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol=protocol), \
                    ModelServer([{"calls": ["x"], "thinking": "hm"}, {"text": "b"}], protocol) as server:
                c = Conversation(server, protocol)
                c.say("Q")
                c.talk[-1].pop("raw")
                c.results("R")
                self.assertEqual(c.status, 200 if protocol == "gemini" else 400)  # there it has lost its id, too


if __name__ == "__main__":
    unittest.main()
