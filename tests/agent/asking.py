"""retort ask and chat, with a model that says what a script has it say."""
import json
import os
import re
import tempfile

import cli
from model_server import ModelServer

PROTOCOLS = ("chat", "responses", "messages", "gemini")
KEY = "sk-test-0123456789abcdef-very-secret"
MISTAKE = {"text": "I try.", "calls": ["values = [1, 2, 3]\ntotal = sum(valeus)"]}


def arguments(server, protocol):
    return ["--base-url", server.base, "--protocol", protocol, "--model", "scripted"]


class Case(cli.Case):
    """Each has its own home, where transcripts go."""

    def setUp(self):
        super().setUp()
        self.home = self.path("home")
        os.mkdir(self.home)
        with open(self.path("key"), "w") as f:
            f.write(KEY + "\n")
        os.chmod(self.path("key"), 0o600)

    def environment(self, **more):
        return {"HOME": self.home, "XDG_STATE_HOME": None, "OPENAI_API_KEY": None, **more}

    def server(self, script, protocol="chat", **options):
        s = ModelServer(script, protocol=protocol, key=KEY, **options)
        s.__enter__()
        self.addCleanup(s.__exit__, None, None, None)
        return s

    def ask(self, script, *args, protocol="chat", question="What is it?", verb="ask", input=b"", env=None, faults=()):
        """One question to its end. What the model's server found wrong fails the test."""
        s = self.server(script, protocol)
        operands = [question] if verb == "ask" else []
        done = cli.run(verb, *arguments(s, protocol), "--key-file", self.path("key"), *args, *operands, input=input,
                       env=self.environment(**(env or {})))
        done.server = s
        self.assertEqual([f for f in map(str, s.faults) if not any(known in f for known in faults)], [], done)
        return done

    def events(self, done):
        return [json.loads(line) for line in done.out.splitlines()]

    def told(self, done, name):
        return [e["data"] for e in self.events(done) if e["event"] == name]

    def answer(self, done):
        answers = self.told(done, "answer")
        self.assertEqual(len(answers), 1, done)
        return answers[0]

    def transcripts(self):
        folder = os.path.join(self.home, ".local/state/retort/chats")
        return sorted(os.path.join(folder, name) for name in os.listdir(folder)) if os.path.isdir(folder) else []


# A cell that says when it has heard the first Ctrl-C, and goes on.
DEAF = ("import time\ntry:\n    print('going', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('heard', flush=True)\n    time.sleep(60)")


def stall(server):
    """Have a model that is told of an interrupted cell of this kind say nothing for long: on a busy machine a second
    Ctrl-C may come after the cell's end, and then ends the answer there."""
    admit = server.admit

    def admit_or_stall(protocol, path, headers, data):
        told = said(json.loads(data))
        if "heard\n" in told and "stopped by the user" not in told:
            return {"text": "never", "hang": 600}, json.loads(data)
        return admit(protocol, path, headers, data)

    server.admit = admit_or_stall


def texts(value):
    """All the text in a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from texts(v)
    elif isinstance(value, list):
        for v in value:
            yield from texts(v)


def said(request):
    return "\n".join(texts(request["body"] if "body" in request else request))
