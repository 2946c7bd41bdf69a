#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: one sound example of each thing a parser reads, so that the
fuzzer starts where the interesting code is. Usage: seeds.py DIRECTORY"""
import pathlib
import re
import struct
import sys


def u8(n): return struct.pack("<B", n)
def u32(n): return struct.pack("<I", n)
def u64(n): return struct.pack("<Q", n)
def text(b): return u32(len(b)) + b
def frame(kind, fields): return u32(len(fields)) + u32(kind) + fields


# Steps of fuzz_frames.c and types of proto.h.
SAY, SAY_RAW, PRINT, COMPLAIN, RUN, INTERRUPT, DIE, ANSWER, END, VARIABLES = range(10)
FENCE, DISPLAY, ERROR, DONE, CHECKED = range(16, 21)


def step(what, data=b""): return u8(what) + u8(len(data)) + data
def say(kind, fields): return step(SAY, u8(kind) + fields)


def display(kind=0, metadata=b'{"a":1}', parts=((b"text/plain", b"x"), (b"image/png", b"\x89PNG"))):
    return say(DISPLAY, u8(kind) + text(metadata) + u32(len(parts)) +
               b"".join(text(t) + text(d) for t, d in parts))


def done(n=1, status=0, code=0, same_as=0xFFFFFFFF):
    return say(DONE, u32(n) + u8(status) + u32(code) + u32(same_as))


error = say(ERROR, text(b"KeyError") + text(b"'x'") + text(b"Traceback"))
FRAMES = {
    "ok": step(RUN, b"1") + step(PRINT, b"hello\n") + done() + step(ANSWER),
    "order": step(RUN, b"1") + step(PRINT, b"a") + say(FENCE, u32(1)) + step(COMPLAIN, b"b") +
             display() + done() + step(ANSWER),
    "error": step(RUN, b"1/0") + error + done(1, 1) + step(ANSWER) + step(RUN, b"2") + done(2) +
             step(ANSWER),
    "no-space": step(RUN, b"1") + say(ERROR, text(b"OSError") + text(b"[Errno 28] x") + text(b"")) +
                done(1, 1) + step(ANSWER),
    "exit": step(RUN, b"1") + done(1, 3, 3) + step(ANSWER),
    "stopped": step(RUN, b"1") + step(INTERRUPT) + done(1, 2) + step(ANSWER),
    "segfault": step(RUN, b"1") + step(PRINT, b"x" * 200) + step(PRINT, b"y" * 200) + step(DIE, u8(11)),
    "memory": step(RUN, b"1") + step(DIE, u8(9) + u8(1)) + step(ANSWER),
    "silent": step(RUN, b"1") + step(END) + step(DIE, u8(9)) + step(ANSWER),
    "idle": display() + step(PRINT, b"late") + say(FENCE, u32(9)) + step(RUN, b"1") + done() +
            step(ANSWER),
    "same": step(RUN, b"1") + done(1, same_as=0) + step(ANSWER) + step(RUN, b"2") + done(2, same_as=1) + step(ANSWER),
    "twice": step(RUN, b"1") + done() + done() + step(ANSWER),
    "raw": step(RUN, b"1") + step(SAY_RAW, frame(DONE, u32(1) + u8(0) + u32(0) + u32(0xFFFFFFFF))[:9]) +
           step(SAY_RAW, frame(DONE, u32(1) + u8(0) + u32(0) + u32(0xFFFFFFFF))[9:]) + step(ANSWER),
    "huge": step(RUN, b"1") + step(SAY_RAW, u32(0xffffffff) + u32(DISPLAY)),
    "odd": step(RUN, b"1") + display(1, b"[", ((b"bad type", b"x"), (b"text/html", b"\xff\xe2\x82"),
                                               (b"text/html", b"twice"), (b"", b""))) + done() + step(ANSWER),
    "variables": step(PRINT, b"late") + step(VARIABLES) + step(PRINT, b"x") + display(0, b"", (
        (b"application/vnd.retort.variables+json",
         b'[{"name":"a","type":"int","shape":[1],"size":8,"text":"1"}]'),)) + done(0) + step(ANSWER) +
        step(RUN, b"1") + done() + step(ANSWER),
    "checked": say(CHECKED, u8(1) + text(b"    ")),
}

# Answers of init. Requests count from 1: CREATE is 1, the first FILE_USAGE 2, CHANGES 3, USAGE 4, then
# the owner's GET 5, SPACE 6, DELETE 7, PUT 8, LIST 9, and what comes next 10.
FILE_DONE, OPENED, CHANGE, USED, USAGE_IS, ENTRIES, RESTORED, POINT, EVICTED = range(16, 25)


def message(kind, fields, flags=0):
    data = u32(kind) + fields
    return u8(flags) + u8(len(data)) + data


def change(req, path, kind=0, sha=b"\xab" * 32):
    return message(CHANGE, u32(req) + u8(kind) + u64(5) + text(sha) + text(path))


def entries(req, *paths, flags=0):
    return message(ENTRIES, u32(req) + b"".join(u64(5) + u64(6) + text(p) for p in paths), flags)


def done_with(req, error=0, reason=b"", flags=0):
    return message(FILE_DONE, u32(req) + u32(error) + text(reason), flags)


ended = message(FILE_DONE, u32(3) + u32(0) + text(b""))
usage = message(USAGE_IS, u32(4) + u64(1000) + u64(4096) + u64(0))
FILES = {
    "none": usage + ended,
    "changes": usage + change(3, b"dir/plot.png") + change(3, b"old", 2, b"") + ended +
               message(USED, u32(10) + u64(4096) + u64(3)),
    "full": usage + change(3, b"a") + ended + message(USED, u32(10) + u64(1 << 29) + u64(3)),
    "escape": usage + change(3, b"../etc/passwd"),
    "half-hash": usage + change(3, b"a", 0, b"abc"),
    "opened": message(OPENED, u32(3), 1) + usage + ended,
    "unasked": message(OPENED, u32(99), 1) + change(98, b"a") + ended + usage,
    "again": usage + ended + message(FILE_DONE, u32(10) + u32(28) + text(b"no"), 2),
    "restored": message(USAGE_IS, u32(4) + u64(1000) + u64(4096) + u64(0), 32) + ended +
                message(RESTORED, u32(10) + u32(4) + text(b"a\nb"), 64) + done_with(99, 0, b"", 2),
    "not-pipes": message(USED, u32(99) + u64(1) + u64(2), 32) + message(RESTORED, u32(10) + u32(4) + text(b""), 1),
    "asked": message(OPENED, u32(5), 1) + message(USED, u32(6) + u64(1) + u64(2)) +
             done_with(7) + done_with(8) + entries(9, b"a", b"a/b") + entries(9, b"b") + done_with(9) +
             usage + ended,
    "refused": done_with(5, 2, b"cannot open the file") + done_with(6) + done_with(7, 39) +
               done_with(8, 28) + done_with(9, 7),
    "no-order": entries(9, b"b", b"a"),
    "escaped": entries(9, b"a", b"../b"),
    "no-file": message(OPENED, u32(5)),
    "cancelled": entries(9, b"a", b"b", flags=8) + done_with(9) + entries(9, b"c", flags=4),
    "closed": done_with(7, flags=16) + done_with(8),
    "empty": u8(1) + u8(0),
    "short": u8(1) + u8(3) + b"\x10\0\0",
    "unknown": message(77, u32(3)),
}

OUTPUT = {
    "ascii": u8(10) + u8(0) + u8(5) + b"hello" + u8(1) + u8(3) + b"err",
    "over": u8(0) + (u8(0) + u8(200) + b"x" * 200) * 3 + u8(1) + u8(2) + b"yz",
    "cut": u8(5) + u8(0) + u8(2) + "€".encode()[:2] + u8(1) + u8(1) + b"E" + u8(0) + u8(1) +
           "€".encode()[2:],
    "displays": u8(0) + (u8(0x80) + u8(9) + b"012345678") * 5,
    "broken": u8(0) + u8(0) + u8(60) + b"\xff" * 60,
    "replay": u8(9) + u8(0) + u8(3) + b"abc" + u8(0x70) + u8(3) + b"def",
}

WIRE = {
    "fields": u32(0o5210) + u8(1) + u32(2) + u64(3) + text(b"bytes") + text(b"t"),
    "limits": u32(3) + u64(1) * 8,
    "frames": frame(16, u32(1)) + frame(19, u32(1) + u8(0) + u32(0)) + frame(17, b""),
    "long": u32(0xffffffff) + u32(1),
}

# The Content-Type, a line feed, the body.
def form(*parts, boundary=b"XX", last=b"--"):
    lines = [b"--" + boundary + b"\r\n" + head + b"\r\n\r\n" + body + b"\r\n" for head, body in parts]
    return (b"multipart/form-data; boundary=" + boundary + b"\n" + b"".join(lines) + b"--" + boundary +
            last + b"\r\n")


DISPOSITION = b"Content-Disposition: form-data; "
MULTIPART = {
    "field": form((DISPOSITION + b'name="a"', b"hello")),
    "files": form((DISPOSITION + b'name="f"; filename="a.csv"\r\nContent-Type: text/csv', b"1,2\r\n3"),
                  (DISPOSITION + b"name=\"f\"; filename=\"x\"; filename*=UTF-8''%e2%82%ac", b"\0\r\n--X")),
    "escapes": form((DISPOSITION + b'name="a\\"b\\\\c%22%0D%0A"; filename=""', b"")),
    "none": form(),
    "cut": form((DISPOSITION + b"name=a", b"x"), last=b""),
    "around": b'multipart/form-data; boundary="X Y"\nbefore\r\n--X Y \r\n' + DISPOSITION +
              b"name=a\r\n\r\n--X Y--after",
    "encoded": form((DISPOSITION + b"name=a\r\nContent-Transfer-Encoding: base64", b"eA==")),
}

# Whole requests; $T is a token, $S a session.
def request(method, path, body=b"", *headers):
    lines = [method + b" " + path + b" HTTP/1.1", b"Host: localhost", b"Authorization: Bearer $T", *headers]
    if body:
        lines.append(b"Content-Length: " + str(len(body)).encode())
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


SESSION = b"/v1/sessions/$S"
REQUESTS = {
    "health": request(b"GET", b"/healthz"), "metrics": request(b"GET", b"/metrics"),
    "openapi": request(b"HEAD", b"/openapi.json"), "absolute": request(b"GET", b"http://localhost/healthz"),
    "page": request(b"GET", b"/healthz", b"", b"Origin: http://localhost"),
    "preflight": request(b"OPTIONS", b"/v1/run", b"", b"Origin: http://localhost"),
    "new": request(b"POST", b"/v1/sessions",
                   b'{"limits":{"memory":"64m","cpus":0.5},"idle_timeout":5,"metadata":{"a":[1]}}'),
    "list": request(b"GET", b"/v1/sessions?limit=1&after=3") +
            request(b"GET", b"/v1/sessions?status=ended"),
    "look": request(b"GET", SESSION) + request(b"GET", SESSION + b"/cells?after=0") +
            request(b"GET", SESSION + b"/cells/1") + request(b"GET", SESSION + b"/notebook"),
    "delete": request(b"DELETE", SESSION) + request(b"DELETE", SESSION),
    "cell": request(b"POST", SESSION + b"/cells", b'{"code":"1","timeout":"none"}'),
    "stream": request(b"POST", SESSION + b"/cells", b'{"code":"1"}', b"Accept: text/event-stream"),
    "interrupt": request(b"POST", SESSION + b"/interrupt"), "variables": request(b"GET", SESSION + b"/variables"),
    "put": request(b"PUT", SESSION + b"/files/a%20b/c.csv", b"1,2\n"),
    "large": request(b"PUT", SESSION + b"/files/a", b"", b"Content-Length: 99999999"),
    "chunks": request(b"PUT", SESSION + b"/files/a", b"", b"Transfer-Encoding: chunked") +
              b"3\r\nabc\r\n0\r\n\r\n",
    "get": request(b"GET", SESSION + b"/files/a", b"", b"Range: bytes=1-"),
    "remove": request(b"DELETE", SESSION + b"/files/a"), "files": request(b"GET", SESSION + b"/files?after=YQ"),
    "zip": request(b"GET", SESSION + b"/files?archive=zip"),
    "form": request(b"POST", SESSION + b"/files",
                    b'--XX\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\nx\r\n--XX--\r\n',
                    b"Content-Type: multipart/form-data; boundary=XX"),
    "run": request(b"POST", b"/v1/run", b'{"code":"1","files":{"a.csv":"YQ=="},"limits":{"pids":9}}'),
    "stranger": b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nX-API-Key: x\r\n\r\n",
    "mcp": request(b"POST", b"/mcp", b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}',
                   b"Accept: text/event-stream, application/json"),
    "mcp-modern": request(b"POST", b"/mcp", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python","arguments":'
                          b'{"code":"1","session":"$S"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
                          b'"io.modelcontextprotocol/clientCapabilities":{},"progressToken":1}}}',
                          b"Accept: text/event-stream, application/json", b"MCP-Protocol-Version: 2026-07-28",
                          b"Mcp-Method: tools/call", b"Mcp-Name: run_python", b"Mcp-Param-Session: =?base64?JFM=?="),
    "mcp-get": request(b"GET", b"/mcp", b"", b"Mcp-Session-Id: x", b"Accept: text/event-stream") +
               request(b"DELETE", b"/mcp", b"", b"Mcp-Session-Id: x"),
    "rebound": b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n",
}

# Lines of MCP, of the modern protocol and of the older one; $S is a session.
META = (b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"progressToken":1}')


def rpc(method, params=b"", n=1, meta=True):
    inside = b",".join(x for x in (params, META if meta else b"") if x)
    return b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s}}\n' % (n, method, inside)


def note(method, params): return b'{"jsonrpc":"2.0","method":"%s","params":{%s}}\n' % (method, params)


def tool(name, arguments, n=1): return rpc(b"tools/call", b'"name":"%s","arguments":{%s}' % (name, arguments), n)


INITIALIZE = rpc(b"initialize", b'"protocolVersion":"2025-11-25","capabilities":{}', 1, False)
MCP = {
    "discover": rpc(b"server/discover"), "tools": rpc(b"tools/list"), "resources": rpc(b"resources/list"),
    "templates": rpc(b"resources/templates/list"), "read": rpc(b"resources/read", b'"uri":"retort://$S/a%20b.txt"'),
    "complete": rpc(b"completion/complete", b'"ref":{"type":"ref/resource","uri":"retort://{session}/{+path}"},'
                                            b'"argument":{"name":"session","value":""}'),
    "listen": rpc(b"subscriptions/listen", b'"notifications":{"resourcesListChanged":true,'
                                           b'"resourceSubscriptions":["retort://$S/a"]}') +
              note(b"notifications/cancelled", b'"requestId":1'),
    "run": tool(b"run_python", b'"code":"1","session":"$S","timeout":5') +
           note(b"notifications/cancelled", b'"requestId":1'),
    "fresh": tool(b"run_python", b'"code":"1"') + tool(b"run_python", b'"code":"2"', 2),
    "files": tool(b"list_files", b'"session":"$S"') + tool(b"read_file", b'"session":"$S","path":"a","offset":1', 2) +
             tool(b"write_file", b'"session":"$S","path":"a/b","text":"x"', 3) +
             tool(b"write_file", b'"path":"a","base64":"eA=="', 4),
    "states": tool(b"rollback", b'"session":"$S","to":1') + tool(b"fork", b'"session":"$S","count":2', 2) +
              tool(b"end_session", b'"session":"$S","reset":true', 3),
    "rounds": rpc(b"tools/call", b'"name":"run_python","inputResponses":{"a":{}},"requestState":"e30=.e30="'),
    "initialize": INITIALIZE + note(b"notifications/initialized", b"") + rpc(b"ping", b"", 2, False) +
                  rpc(b"logging/setLevel", b'"level":"info"', 3, False) +
                  rpc(b"resources/subscribe", b'"uri":"retort://$S/a"', 4, False) +
                  rpc(b"tools/list", b"", 4, False) + rpc(b"resources/unsubscribe", b'"uri":"retort://$S/a"', 5, False),
    "batch": INITIALIZE.replace(b"2025-11-25", b"2025-03-26") + b'[{"jsonrpc":"2.0","id":2,"method":"ping"},7]\n',
    "odd": b'{}\n[]\n7\n\n{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":null,"method":"a"}\n\xff\n{"a":"\0"}',
    "version": rpc(b"server/discover").replace(b"2026-07-28", b"v9"),
    "greeting": rpc(b"tools/list", b"", 1, False),
}

# Which parser (see fuzz_headers.c), then the text.
HEADERS = {
    "range": u8(0) + b"bytes=2-5", "suffix": u8(0) + b"bytes=-3", "open": u8(0) + b"bytes=3-",
    "overflow": u8(0) + b"bytes=18446744073709551616-",
    "path": u8(1) + b"dir/a%20b%2Fc.csv", "up": u8(1) + b"a/%2e%2e/b",
    "name": u8(2) + "dir/\"€\\%\r\n".encode() + b"\xff",
    "host": u8(3) + b"localhost:8722", "six": u8(3) + b"[::1]:8722", "four": u8(3) + b"127.0.0.1",
    "ours": u8(3) + b"Retort.example.org.", "origin": u8(3) + b"http://localhost:8722",
    "chat": u8(3) + b"https://chat.example.org", "user": u8(3) + b"http://localhost:8722@evil",
    "accept": u8(4) + b'a/b;x=","; q=0, text/event-stream;q=0.1', "type": u8(5) + b"a/b.tar.gz",
}

SHIPPED = pathlib.Path(__file__).parents[2] / "etc/retort.conf"
CONFIG = {
    "shipped": SHIPPED.read_bytes(),
    "set": re.sub(rb"(?m)^#(?=[a-z])", b"", SHIPPED.read_bytes()),
    "none": b"memory = none\nmax_cpus=none\nidle_timeout = none # x\njournal_outputs = none\r\n",
    "listen": b"listen = [::1]:0\nhosts = a b\norigins = http://a:1 https://b\nenvironments = a b\n",
    "slip": b"memroy = 1g", "twice": b"pool = 1\npool = 2\n", "no-value": b"pool\n", "zero": b"timeout = 0",
}


# Into how many pieces, then the stream.
EVENTS = {
    "ours": u8(4) + b'event: stdout\ndata: {"a":1}\n\n: still here\n\nevent: cell\ndata: {}\n\n',
    "crlf": u8(0) + b"\xef\xbb\xbfevent:a\r\ndata:1\r\n\r\ndata\rdata: 2\r\r",
    "long": u8(9) + b"data: " + b"x" * 70 + b"\n\n", "lines": u8(1) + b"data: 0123456789\n" * 7 + b"\n",
}

# A byte for the protocol and the pieces, then events.
def stream(protocol, *events): return u8(protocol) + b"".join(b"data: " + e + b"\n\n" for e in events)
def block(n, what, more=b""): return b'{"type":"content_block_' + what + b'","index":' + n + more + b"}"


REPLY = {
    "chat": stream(0, b'{"choices":[{"index":0,"delta":{"content":"h\\u00e9 \\ud83d","reasoning_content":"r"}}]}',
                   b'{"choices":[{"delta":{"content":"\\ude00"},"finish_reason":"stop"}]}',
                   b'{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}', b"[DONE]"),
    "chat-calls": stream(4, b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"python",'
                            b'"arguments":"{\\"code\\":\\"x"},"extra_content":{"google":{}}}]}}]}',
                         b'{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\\\n\\"}"}}]},'
                         b'"finish_reason":"tool_calls"}]}'),
    "chat-blocks": stream(8, b'{"choices":[{"delta":{"content":"```python\\nx\\n```\\n~~~py\\ny"},'
                             b'"finish_reason":"length"}]}'),
    "chat-whole": u8(0) + b'{"choices":[{"message":{"content":[{"text":"x"}],"tool_calls":[{"function":{"name":"p",'
                          b'"arguments":{"code":["x","y"]}}}]},"finish_reason":"stop"}]}',
    "responses": stream(1, b'{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r",'
                           b'"summary":[],"encrypted_content":"x"}}',
                        b'{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call",'
                        b'"call_id":"c","name":"python"}}',
                        b'{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}',
                        b'{"type":"response.output_text.delta","delta":"t"}',
                        b'{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1}}}'),
    "messages": stream(2, block(b"0", b"start", b',"content_block":{"type":"thinking"}'),
                       block(b"0", b"delta", b',"delta":{"type":"thinking_delta","thinking":"x"}'),
                       block(b"0", b"delta", b',"delta":{"type":"signature_delta","signature":"x"}'),
                       block(b"0", b"stop"), block(b"1", b"start", b',"content_block":{"type":"text","text":"x"}'),
                       block(b"1", b"stop"),
                       block(b"2", b"start", b',"content_block":{"type":"tool_use","id":"c","name":"python"}'),
                       block(b"2", b"delta", b',"delta":{"type":"input_json_delta","partial_json":"{}"}'),
                       block(b"2", b"stop"), b'{"type":"message_delta","delta":{"stop_reason":"tool_use"}}',
                       b'{"type":"message_stop"}'),
    "gemini": stream(3, b'{"candidates":[{"content":{"parts":[{"text":"x"},{"functionCall":{"name":"python","id":"c",'
                        b'"args":{"code":"x"}},"thoughtSignature":"s"}]},"finishReason":"STOP"}],'
                        b'"usageMetadata":{"promptTokenCount":1}}'),
    "error": stream(2, b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}'),
}

RECEIPT = b'"receipt":{"wall_ms":0.25,"cpu_ms":1,"peak_memory":1048576}'
CELL_JSON = {
    "least": b'{"n":1,"code":"1","status":"ok","outputs":[],"files":[],' + RECEIPT + b"}",
    "most": b'{"n":2,"code":"\\u0000","status":"limit","outputs":[{"type":"stdout","text":"a"},'
            b'{"type":"result","data":{"text/plain":"4","image/png":"iVBORw=="},"metadata":{"a":{"b":[1]}}}],'
            b'"error":{"name":"E","value":"v","traceback":""},"limit":{"kind":"cpu","limit":null,"used":0.1},'
            b'"files":[{"path":"a","change":"created","size":1,"sha256":"' + b"0f" * 32 + b'"},'
            b'{"path":"b","change":"deleted"}],"truncated":{"stdout_bytes":1,"stderr_bytes":0,"displays":2},'
            b'"exit":{"status":3},"session_ended":true,' + RECEIPT + b"}",
    "signal": b'{"n":1,"code":"","status":"crashed","outputs":[{"type":"display","data":{},"streamed":true}],'
              b'"files":[],"exit":{"signal":11},' + RECEIPT + b"}",
    "display": b'{"type":"display","data":{"image/png":"iVBORw==","text/html":"<b>"},"metadata":{}}',
    "text": b'{"type":"stderr","text":"\xc3\xa9"}',
}

MARKDOWN = {
    "all": u8(61) + b"# T\n\n**b** *i* `c` [a](b) ![p](q) &amp; &#27;\n\n- a\n  1. b\n\n> q\n\n---\n\n"
                    b"```python\nx = 'a'\n```\n\n|a|b|\n|-|:-:|\n|1|\xe4\xb8\xad|\n",
    "hostile": u8(0) + b"\x1b]0;t\x07 \x1b[2J \xc2\x9b \xff \xe2\x80\xae\r\b",
    "kitty": u8(1) + b"\x1b_Ga=T,f=32,s=1,v=1,m=1\x1b\\\x1b_Gm=0;AAAA\x1b\\",
    "sixel": u8(1) + b"\x1bP0;1;0q\"1;1;30;20#0;2;1;2;3!30~-\x1b\\",
}

OUTPUTS = (b'[{"output_type":"stream","name":"stdout","text":["a 12.5\\n","b\\r[00:01<00:00, 4.9it/s]"]},'
           b'{"output_type":"display_data","data":{"image/png":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ\\n",'
           b'"application/vnd.retort.chart+json":{"a":[1.5]}},"metadata":{}},'
           b'{"output_type":"execute_result","data":{"text/plain":"<A at 0x7f0123456789>","text/html":["<b>1</b>"]}},'
           b'{"output_type":"error","ename":"E","evalue":"<cell 3>","traceback":[]}]')
NOTEBOOK = {
    "one": b'{"nbformat":4,"cells":[{"cell_type":"code","source":["x\\n","y"],"execution_count":1,"outputs":' + OUTPUTS +
           b',"metadata":{"retort":{"files":[{"path":"a.pdf","change":"created","sha256":"0f"}],"undone":true}}},'
           b'{"cell_type":"code","source":"z","outputs":[],"metadata":{}},'
           b'{"cell_type":"markdown","source":"12.5, 45 % and **1,234** `5` on 2026-03-15",'
           b'"metadata":{"retort":{"role":"answer"}}}],'
           b'"metadata":{"retort":{"files":[{"name":"a","sha256":"' + b"0f" * 32 + b'"}]}}}',
    "numbers": b"1. about $1,234.5 and -1.234,5, 1 234 or 12e-3; 5-10 %, 1.2 \xc3\x97 10^6; March 15, 2026 at 2:30 pm\n"
               b"| 11 | 1.2 million |\n```\n9\n``` `8` [7](http://x/6) 3rd R^2 v1.2 2023.csv p < 0.05 95% CI\0"
               b"[1,234,5.5] 0.4512 2026-03-15T14:30:00",
}


def main():
    for name, seeds in {"frames": FRAMES, "files": FILES, "output": OUTPUT, "wire": WIRE,
                        "multipart": MULTIPART, "headers": HEADERS, "config": CONFIG, "events": EVENTS,
                        "cell_json": CELL_JSON, "markdown": MARKDOWN, "notebook": NOTEBOOK, "reply": REPLY, "requests": REQUESTS, "mcp": MCP}.items():
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed, data in seeds.items():
            (folder / seed).write_bytes(data)


main()
