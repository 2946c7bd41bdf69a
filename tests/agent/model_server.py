#!/usr/bin/python3
"""A model that says what a script has it say, behind a server that speaks the four protocols.

    with ModelServer([{"calls": ["print(1)"]}, {"text": "It is 1."}], protocol="messages") as s:
        … s.url, s.base, s.key …
        s.requests, s.faults

    tests/agent/model_server.py [--protocol NAME] [--key KEY] [--port N] SCRIPT.json      prints its URL

A script is a list of replies, one for each request that is right; one that is wrong is refused as the real API
refuses it, is remembered (faults), and takes nothing from the script. A reply:

    text, calls      what the model says; a call is code, or {"arguments": …, "name": …} with any arguments
    thinking         thoughts, with a sign that must come back as long as the reply is in the conversation
    stop             "cut" or "refused"
    usage            [in, out]
    expect           a regular expression that must be found in what is new in the request; expect_anywhere: in all of
                     it; expect_not: nowhere in it. Else the answer is 400, and a fault
    loop             this reply for ever

and what goes wrong with it:

    status           an error; with retry_after (s) and message, and all headers in headers
    no_tools         a request with tools is refused, as Ollama does it, until one comes without
    no_pictures      the same with pictures
    slow             ms before each event, or each KB of a whole answer
    hang             s of silence before the answer; with after: that many events after its beginning
    cut_after        events, or {"bytes": n}, after which the connection breaks; with cleanly: it is closed as if that
                     were all
    pieces           arguments and text in pieces of n characters (of UTF-16 with utf16: halves of pairs, too)
    malformed        JSON that is none
    error            a sentence: the stream has an error in it, after its text
    whole            JSON, although a stream was asked for
    raw              the bytes of the answer; or a list: events; or an object: the JSON of a whole answer
"""
import argparse
import http.server
import itertools
import json
import re
import secrets
import sys
import threading

from model_protocols import PROTOCOLS, Turn, Wrong

MODEL = "scripted"


def cut(text, size):
    return [text[i:i + size] for i in range(0, len(text), size)]


def cut_utf16(text, size):
    data = text.encode("utf-16-le", "surrogatepass")
    return [p.decode("utf-16-le", "surrogatepass") for p in cut(data, 2 * size)]


def strings(value):
    """All the text that there is in JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for v in (value.values() if isinstance(value, dict) else value):
            yield from strings(v)


class Broken(Exception):
    """The connection is to break here."""


class Answer(http.server.BaseHTTPRequestHandler):
    """One connection."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def send_json(self, status, value, headers=()):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in headers:
            self.send_header(name, str(text))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        s = self.server.model
        answers = {"/requests": s.requests, "/faults": s.faults,
                   "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model"}]}}
        if s.pretends in (None, "ollama"):
            answers["/api/tags"] = {"models": [{"name": f"{MODEL}:latest", "model": f"{MODEL}:latest"}]}
        if s.pretends in (None, "llamacpp"):
            answers["/props"] = {"model_path": f"/models/{MODEL}.gguf", "total_slots": 1}
        if self.path in answers:
            self.send_json(200, answers[self.path])
        else:
            self.send_json(404, {"error": {"message": f"no {self.path} here"}})

    def do_POST(self):
        s = self.server.model
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        protocol = next((p for p in s.protocols if p.path.fullmatch(self.path)), None)
        try:
            if not protocol:
                s.fault(f"POST {self.path}: there is no such call")
                self.send_json(404, {"error": {"message": f"no {self.path} here", "type": "not_found_error"}})
                return
            reply, body = s.admit(protocol, self.path, {k.lower(): v for k, v in self.headers.items()}, data)
            self.say(s, protocol, reply, body)
        except Wrong as e:
            s.fault(f"{self.path}: {e}", e.status)
            self.send_json(e.status, protocol.error(e.status, str(e)))
        except (Broken, ConnectionError):
            self.close_connection = True

    def say(self, s, protocol, reply, body):
        if "hang" in reply and "after" not in reply:
            s.pause(reply["hang"])
        if "status" in reply:
            headers = list(reply.get("headers", {}).items())
            if "retry_after" in reply:
                headers.append(("Retry-After", reply["retry_after"]))
            message = reply.get("message", f"This is a scripted {reply['status']}.")
            self.send_json(reply["status"], protocol.error(reply["status"], message), headers)
        elif protocol.streams(self.path, body) and not reply.get("whole") and not isinstance(reply.get("raw"), dict):
            self.stream(s, reply, s.events(protocol, reply))
        else:
            self.send_whole(s, reply, s.whole(protocol, reply))

    def send_whole(self, s, reply, data):
        limit = reply.get("cut_after", len(data))
        limit = limit["bytes"] if isinstance(limit, dict) else limit
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for part in cut(data[:limit], 1024):
            s.pause(reply.get("slow", 0) / 1000)
            self.wfile.write(part)
            self.wfile.flush()
        if limit < len(data):
            raise Broken

    def stream(self, s, reply, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        limit, sent = reply.get("cut_after"), 0
        for n, data in enumerate(events):
            if n == reply.get("after"):
                s.pause(reply["hang"])
            if limit == n:
                break
            if isinstance(limit, dict):
                data = data[:limit["bytes"] - sent]
            s.pause(reply.get("slow", 0) / 1000)
            sent += len(data)
            if data:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            if isinstance(limit, dict) and sent >= limit["bytes"]:
                break
        if limit is not None and not reply.get("cleanly"):
            raise Broken
        self.wfile.write(b"0\r\n\r\n")


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, address)


class ModelServer:
    """`pretends` is "ollama" or "llamacpp" for one that answers the other's calls with 404. `key` None takes any."""

    def __init__(self, script, protocol=None, key="random", pretends=None, port=0):
        self.script = list(script)
        self.protocols = [PROTOCOLS[protocol]] if protocol else list(PROTOCOLS.values())
        self.key = "sk-scripted-" + secrets.token_hex(16) if key == "random" else key
        self.pretends = pretends
        self.requests, self.faults = [], []  # what came, and what was wrong with it
        self.signs = {}  # by the id of a call that came with thoughts: the protocol, and the sign
        self.ids = itertools.count(1)
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.listener = Listener(("127.0.0.1", port), Answer)
        self.listener.model = self
        self.url = "http://127.0.0.1:%d" % self.listener.server_address[1]
        self.base = self.url + self.protocols[0].base

    def __enter__(self):
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        self.listener.shutdown()
        self.listener.server_close()

    def pause(self, seconds):
        if seconds and self.stopping.wait(seconds):
            raise Broken

    def fault(self, why, status=404):
        with self.lock:
            self.faults.append({"status": status, "why": why, "request": len(self.requests)})

    # ---- requests ----

    def admit(self, protocol, path, headers, data):
        """The reply to this request. What is wrong with it is raised."""
        try:
            body = json.loads(data)
        except ValueError:
            raise Wrong("We could not parse the JSON body of your request.") from None
        with self.lock:
            self.requests.append({"protocol": protocol.name, "path": path, "headers": headers, "body": body})
        if self.key is not None and protocol.key(headers) != self.key:
            raise Wrong("Incorrect API key provided.", 401)
        if headers.get("content-type", "").split(";")[0] != "application/json":
            raise Wrong("Content-Type must be application/json", 415)
        try:
            protocol.check(path, headers, body)
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise Wrong(f"a member is missing or of another type: {e!r}") from None
        self.check_signs(protocol, body)
        with self.lock:
            reply = self.next_reply()
            self.check_ability(protocol, reply, body)
            self.check_expected(protocol, reply, body)
            if not reply.get("loop"):
                self.script.pop(0)
        return reply, body

    def next_reply(self):
        if not self.script:
            raise Wrong("the script is over")
        return self.script[0]

    def check_signs(self, protocol, body):
        text = json.dumps(body)
        for call, (speaks, sign) in self.signs.items():
            if speaks == protocol.name and f'"{call}"' in text and sign not in text:
                raise Wrong(f"the thoughts that led to {call} must be passed back")

    @staticmethod
    def check_ability(protocol, reply, body):
        if reply.get("no_tools") and body.get("tools"):
            raise Wrong(f"registry.ollama.ai/library/{MODEL}:latest does not support tools")
        if reply.get("no_pictures") and protocol.pictures(body):
            raise Wrong("this model does not support image input")

    @staticmethod
    def check_expected(protocol, reply, body):
        fresh, everything = ("\n".join(strings(v)) for v in (protocol.fresh(body), body))
        for member, text, wanted in (("expect", fresh, True), ("expect_anywhere", everything, True),
                                     ("expect_not", everything, False)):
            if member in reply and bool(re.search(reply[member], text, re.M)) != wanted:
                raise Wrong(f"{member} {reply[member]!r}: not so in {text[-2000:]!r}")

    # ---- replies ----

    def turn(self, protocol, reply):
        calls = []
        for call in reply.get("calls", []):
            call = {"arguments": {"code": call}} if isinstance(call, str) else call
            arguments = call["arguments"]
            prefix = {"chat": "call_", "responses": "call_", "messages": "toolu_", "gemini": "g"}[protocol.name]
            calls.append((prefix + str(next(self.ids)), call.get("name", "python"),
                          arguments if isinstance(arguments, str) else json.dumps(arguments)))
        sign = ""
        if reply.get("thinking"):
            sign = secrets.token_hex(8)
            with self.lock:
                self.signs.update({i: (protocol.name, sign) for i, _, _ in calls})
        return Turn(text=reply.get("text", ""), calls=calls, thinking=reply.get("thinking", ""), sign=sign,
                    usage=tuple(reply.get("usage", (11, 7))), stop=reply.get("stop", "end"))

    def whole(self, protocol, reply):
        raw = reply.get("raw")
        if isinstance(raw, str):
            return raw.encode()
        data = json.dumps(raw if raw is not None else protocol.whole(self.turn(protocol, reply))).encode()
        return data[:-2] if reply.get("malformed") else data

    def events(self, protocol, reply):
        raw = reply.get("raw")
        if isinstance(raw, str):
            yield raw.encode()
            return
        if raw is not None:
            pairs = [(None, json.dumps(e)) for e in raw]
        else:
            split = cut_utf16 if reply.get("utf16") else cut
            size = reply.get("pieces")
            pairs = list(protocol.events(self.turn(protocol, reply), lambda text: split(text, size or 12),
                                         lambda text: split(text, size or 16)))
        if reply.get("malformed"):
            pairs.insert(len(pairs) // 2, (None, '{"choices": [{"delta": {"content": "ab'))
        if reply.get("error"):
            pairs = pairs[:len(pairs) // 2] + [protocol.failure(reply["error"])]
        for name, data in pairs:
            yield (f"event: {name}\n" if name else "").encode() + b"data: " + data.encode() + b"\n\n"


def main():
    parser = argparse.ArgumentParser(description="A model that says what a script has it say.")
    parser.add_argument("--protocol", choices=PROTOCOLS, help="only this one")
    parser.add_argument("--key", help="the key that is wanted; else any is taken")
    parser.add_argument("--pretend", choices=("ollama", "llamacpp"))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("script", help="a file of JSON, or - for standard input")
    options = parser.parse_args()
    with sys.stdin if options.script == "-" else open(options.script) as f:
        script = json.load(f)
    with ModelServer(script, options.protocol, options.key, options.pretend, options.port) as s:
        print(s.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
