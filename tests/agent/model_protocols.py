"""The four APIs from their servers' side: what a request must be, and what an answer looks like.

Requests are checked as strictly as the real ones check them, and refused in their words' shape. An answer is made of a
Turn, whole or as a list of events, each a pair (name or None, data as text).
"""
import base64
import dataclasses
import json
import re


class Wrong(Exception):
    """A request that the real API would refuse."""

    def __init__(self, message, status=400):
        super().__init__(message)
        self.status = status


@dataclasses.dataclass
class Turn:
    """What the model says."""
    text: str = ""
    calls: list = dataclasses.field(default_factory=list)  # (id, name, arguments as text)
    thinking: str = ""  # with a sign that is to come back
    sign: str = ""
    usage: tuple = (11, 7)
    stop: str = "end"  # or "cut", "refused"


def demand(condition, message):
    if not condition:
        raise Wrong(message)


def known(what, keys, allowed):
    for key in keys:
        demand(key in allowed.split(), f"{what}: unknown member '{key}'")


def text_of(value, what, blank=False):
    demand(isinstance(value, str), f"{what}: expected a string")
    demand(blank or value.strip(), f"{what}: must contain non-whitespace text")
    return value


def check_picture(kind, data):
    demand(re.fullmatch(r"image/(png|jpeg|gif|webp)", str(kind)), f"unsupported image type {kind!r}")
    try:
        demand(base64.b64decode(data, validate=True), "empty image")
    except (ValueError, TypeError):
        raise Wrong("invalid base64 in an image") from None


def check_data_url(url):
    found = re.fullmatch(r"data:([^;,]*);base64,(.*)", str(url), re.S)
    demand(found, "image_url: expected a base64 data URL")
    check_picture(*found.groups())


def check_function(function, parameters):
    demand(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(function.get("name"))), "tools: invalid name")
    text_of(function.get("description"), "tools.description")
    demand(function.get(parameters, {}).get("type") == "object", f"tools.{parameters}: expected an object schema")


def check_json_object(text, what):
    try:
        demand(isinstance(json.loads(text_of(text, what)), dict), f"{what}: expected a JSON object")
    except ValueError:
        raise Wrong(f"{what}: invalid JSON") from None


def as_object(arguments):
    """Where an API has no text for them."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}


def event(data, name=None):
    return name, json.dumps(data)


# ---- chat completions ----

class Chat:
    name, base = "chat", "/v1"
    path = re.compile(r"/v1/chat/completions")

    @staticmethod
    def key(headers):
        return headers.get("authorization", "").removeprefix("Bearer ") or None

    @staticmethod
    def streams(path, body):
        return body.get("stream") is True

    @staticmethod
    def error(status, message):
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}

    @staticmethod
    def fresh(body):
        """What came since the model spoke last."""
        messages = body["messages"]
        last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
        return messages[last + 1:]

    @staticmethod
    def pictures(body):
        return '"image_url"' in json.dumps(body["messages"])

    @staticmethod
    def check_user(content):
        if isinstance(content, str):
            return text_of(content, "content")
        demand(isinstance(content, list) and content, "content: expected a string or parts")
        for part in content:
            if part.get("type") == "text":
                text_of(part.get("text"), "content.text")
            else:
                demand(part.get("type") == "image_url", f"content: unknown part {part.get('type')!r}")
                check_data_url(part["image_url"].get("url"))

    @staticmethod
    def check_calls(message):
        calls = message.get("tool_calls")
        demand(calls is None or calls, "tool_calls: empty array")
        if calls is None or message.get("content") is not None:
            text_of(message.get("content"), "assistant.content", blank=calls is not None)
        for call in calls or []:
            known("tool_calls", call, "id type function extra_content")
            demand(call.get("type") == "function", "tool_calls.type: expected 'function'")
            known("tool_calls.function", call["function"], "name arguments")
            demand(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"]), "tool_calls: invalid name")
            check_json_object(call["function"]["arguments"], "tool_calls.arguments")
        return [text_of(call.get("id"), "tool_calls.id") for call in calls or []]

    @classmethod
    def check(cls, path, headers, body):
        known("request", body, "model messages tools stream stream_options max_tokens max_completion_tokens")
        text_of(body.get("model"), "model")
        demand("stream_options" not in body or body.get("stream"), "stream_options is only allowed with stream")
        for tool in body.get("tools", []):
            demand(tool.get("type") == "function", "tools.type: expected 'function'")
            check_function(tool["function"], "parameters")
        waiting, last = [], None
        demand(body.get("messages"), "messages: empty array")
        for i, message in enumerate(body["messages"]):
            role = message.get("role")
            known("message", message, "role content tool_calls tool_call_id reasoning_content")
            demand(role == "tool" or not waiting,
                   f"An assistant message with 'tool_calls' must be followed by tool messages: missing {waiting}")
            if role == "system":
                demand(i == 0, "system: only the first message may be one")
                text_of(message.get("content"), "system")
            elif role == "user":
                demand(last != "user", "user and assistant must alternate")  # as templates of local models want it
                cls.check_user(message.get("content"))
            elif role == "assistant":
                waiting = cls.check_calls(message)
                demand(len(set(waiting)) == len(waiting), "tool_calls: duplicate ids")
            else:
                demand(role == "tool", f"unknown role {role!r}")
                demand(message.get("tool_call_id") in waiting, "messages with role 'tool' must follow their call")
                waiting.remove(message["tool_call_id"])
                text_of(message.get("content"), "tool.content", blank=True)
            last = role
        demand(not waiting and last in ("user", "tool"), "the last message must be a user's or a tool's")

    @staticmethod
    def message(turn):
        m = {"role": "assistant", "content": turn.text or None}
        if turn.thinking:
            m["reasoning_content"] = turn.thinking + turn.sign
        if turn.calls:
            m["tool_calls"] = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}}
                               for i, n, a in turn.calls]
        return m

    @staticmethod
    def reason(turn):
        return {"cut": "length", "refused": "content_filter"}.get(turn.stop, "tool_calls" if turn.calls else "stop")

    @staticmethod
    def usage(turn):
        return {"prompt_tokens": turn.usage[0], "completion_tokens": turn.usage[1], "total_tokens": sum(turn.usage)}

    @classmethod
    def whole(cls, turn):
        return {"id": "chatcmpl-1", "object": "chat.completion", "usage": cls.usage(turn),
                "choices": [{"index": 0, "message": cls.message(turn), "finish_reason": cls.reason(turn)}]}

    @classmethod
    def events(cls, turn, cut_text, cut_arguments):
        def chunk(delta, reason=None):
            return event({"id": "chatcmpl-1", "object": "chat.completion.chunk",
                          "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in cut_text(turn.thinking + turn.sign):
            yield chunk({"reasoning_content": piece})
        for piece in cut_text(turn.text):
            yield chunk({"content": piece})
        for n, (i, name, arguments) in enumerate(turn.calls):
            yield chunk({"tool_calls": [{"index": n, "id": i, "type": "function",
                                         "function": {"name": name, "arguments": ""}}]})
            for piece in cut_arguments(arguments):
                yield chunk({"tool_calls": [{"index": n, "function": {"arguments": piece}}]})
        yield chunk({}, cls.reason(turn))
        yield event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": cls.usage(turn)})
        yield None, "[DONE]"

    @classmethod
    def failure(cls, message):
        return event(cls.error(500, message))


# ---- responses ----

class Responses:
    name, base = "responses", "/v1"
    path = re.compile(r"/v1/responses")
    key, streams, error = Chat.key, Chat.streams, Chat.error

    @staticmethod
    def fresh(body):
        items = body["input"]
        last = max((i for i, m in enumerate(items) if m["type"] in ("function_call", "reasoning")
                    or m.get("role") == "assistant"), default=-1)
        return items[last + 1:]

    @staticmethod
    def pictures(body):
        return '"input_image"' in json.dumps(body["input"])

    @staticmethod
    def check_content(content, text):
        demand(isinstance(content, list) and content, "content: expected parts")
        for part in content:
            if part.get("type") == "input_image" and text == "input_text":
                check_data_url(part.get("image_url"))
            else:
                demand(part.get("type") == text, f"content: {part.get('type')!r} where {text!r} belongs")
                text_of(part.get("text"), "content.text", blank=True)

    @classmethod
    def check_item(cls, item, store):
        kind = item.get("type")
        if kind == "message":
            demand(item.get("role") in ("user", "assistant"), "message: unknown role")
            cls.check_content(item.get("content"), "input_text" if item["role"] == "user" else "output_text")
        elif kind == "reasoning":
            demand(store or item.get("encrypted_content"), f"Item {item.get('id')!r} not found: items are not "
                   "persisted when `store` is set to false")
            demand(isinstance(item.get("summary"), list), "reasoning.summary: expected an array")
        elif kind == "function_call":
            text_of(item.get("name"), "function_call.name")
            text_of(item.get("arguments"), "function_call.arguments", blank=True)
            demand(len(text_of(item.get("call_id"), "call_id")) <= 64, "call_id: string too long")
        elif kind == "function_call_output":
            if not isinstance(item.get("output"), str):
                cls.check_content(item.get("output"), "input_text")
        else:
            raise Wrong(f"input: unknown item {kind!r}")

    @classmethod
    def check(cls, path, headers, body):
        known("request", body, "model instructions input store include tools stream max_output_tokens")
        text_of(body.get("model"), "model")
        text_of(body.get("instructions"), "instructions")
        demand(isinstance(body.get("store"), bool), "store: expected a boolean")
        for tool in body.get("tools", []):
            demand(tool.get("type") == "function" and tool.get("strict") is False, "tools: a strict schema is wanted")
            check_function(tool, "parameters")
        waiting, thought = [], False
        demand(body.get("input"), "input: empty array")
        for item in body["input"]:
            cls.check_item(item, body["store"])
            kind = item["type"]
            ours = kind in ("reasoning", "function_call") or item.get("role") == "assistant"
            demand(ours or not thought, "Item 'rs' of type 'reasoning' was provided without its required following item")
            if kind == "function_call":
                waiting.append(item["call_id"])
            elif kind == "function_call_output":
                demand(item.get("call_id") in waiting, f"No tool call found for call_id {item.get('call_id')!r}")
                waiting.remove(item["call_id"])
            else:
                demand(not waiting, f"No tool output found for function call {waiting}")
            thought = kind == "reasoning"
        demand(not waiting and not ours, f"No tool output found for function call {waiting}")

    @staticmethod
    def items(turn):
        if turn.thinking:
            yield {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": turn.thinking + turn.sign}
        if turn.text:
            yield {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                   "content": [{"type": "output_text", "text": turn.text, "annotations": []}]}
        for i, name, arguments in turn.calls:
            yield {"type": "function_call", "id": "fc_" + i, "call_id": i, "name": name, "arguments": arguments,
                   "status": "completed"}

    @classmethod
    def whole(cls, turn):
        body = {"id": "resp_1", "object": "response", "status": "completed", "error": None,
                "output": list(cls.items(turn)),
                "usage": {"input_tokens": turn.usage[0], "output_tokens": turn.usage[1]}}
        if turn.stop != "end":
            reason = {"cut": "max_output_tokens", "refused": "content_filter"}[turn.stop]
            body |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
        return body

    @classmethod
    def events(cls, turn, cut_text, cut_arguments):
        def say(kind, **more):
            return event({"type": "response." + kind, **more}, "response." + kind)

        yield say("created", response={"id": "resp_1", "status": "in_progress", "output": []})
        for n, item in enumerate(cls.items(turn)):
            at = {"output_index": n, "item_id": item["id"]}
            empty = {"content": [], "arguments": "", "encrypted_content": ""}
            yield say("output_item.added", output_index=n, item=item | {k: empty[k] for k in empty if k in item})
            if item["type"] == "message":
                for piece in cut_text(turn.text):
                    yield say("output_text.delta", content_index=0, delta=piece, **at)
                yield say("output_text.done", content_index=0, text=turn.text, **at)
            elif item["type"] == "function_call":
                for piece in cut_arguments(item["arguments"]):
                    yield say("function_call_arguments.delta", delta=piece, **at)
                yield say("function_call_arguments.done", arguments=item["arguments"], **at)
            yield say("output_item.done", output_index=n, item=item)
        whole = cls.whole(turn)
        yield say(whole["status"], response=whole)

    @staticmethod
    def failure(message):
        return event({"type": "error", "code": "server_error", "message": message}, "error")


# ---- messages ----

class Messages:
    name, base = "messages", "/v1"
    path = re.compile(r"/v1/messages")
    streams = Chat.streams

    @staticmethod
    def key(headers):
        return headers.get("x-api-key")

    @staticmethod
    def error(status, message):
        kind = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 500: "api_error",
                529: "overloaded_error"}.get(status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}

    @staticmethod
    def fresh(body):
        return body["messages"][-1:]

    @staticmethod
    def pictures(body):
        return '"type": "image"' in json.dumps(body["messages"])

    @classmethod
    def check_block(cls, block, role, where):
        kind = block.get("type")
        demand(not block.get("cache_control") or kind not in ("thinking", "redacted_thinking"),
               "cache_control: not allowed on thinking")
        if kind == "text":
            known(where, block, "type text cache_control")
            text_of(block.get("text"), f"{where}.text")
        elif kind == "image" and role == "user":
            demand(block.get("source", {}).get("type") == "base64", f"{where}.source: expected base64")
            check_picture(block["source"].get("media_type"), block["source"].get("data"))
        elif kind == "tool_result" and role == "user":
            known(where, block, "type tool_use_id content is_error cache_control")
            for part in block.get("content", []):
                cls.check_block(part, "user", where + ".content")
        elif kind == "tool_use" and role == "assistant":
            known(where, block, "type id name input")
            demand(re.fullmatch(r"[a-zA-Z0-9_-]+", str(block.get("id"))), f"{where}.id: String should match pattern")
            text_of(block.get("name"), f"{where}.name")
            demand(isinstance(block.get("input"), dict), f"{where}.input: Input should be a valid dictionary")
        elif kind == "thinking" and role == "assistant":
            text_of(block.get("signature"), f"{where}.signature")
        else:
            demand(kind == "redacted_thinking" and role == "assistant", f"{where}: unexpected block {kind!r}")

    @classmethod
    def check(cls, path, headers, body):
        demand(headers.get("anthropic-version") == "2023-06-01", "anthropic-version: header is required")
        known("request", body, "model max_tokens system messages tools stream")
        text_of(body.get("model"), "model")
        demand(isinstance(body.get("max_tokens"), int) and body["max_tokens"] > 0, "max_tokens: Field required")
        demand(json.dumps(body).count('"cache_control"') <= 4, "A maximum of 4 blocks with cache_control may be provided")
        for block in body.get("system", []):
            cls.check_block(block, "assistant", "system")
        for tool in body.get("tools", []):
            known("tools", tool, "name description input_schema eager_input_streaming cache_control")
            check_function(tool, "input_schema")
        waiting, seen = [], set()
        demand(body.get("messages"), "messages: at least one message is required")
        for i, message in enumerate(body["messages"]):
            known("message", message, "role content")
            demand(message.get("role") == ("user", "assistant")[i % 2], "messages: roles must alternate, user first")
            demand(isinstance(message.get("content"), list) and message["content"], f"messages.{i}.content: empty")
            for k, block in enumerate(message["content"]):
                cls.check_block(block, message["role"], f"messages.{i}.content.{k}")
            kinds = [b["type"] for b in message["content"]]
            results = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
            demand(sorted(results) == sorted(waiting), f"messages.{i}: `tool_use` ids were found without `tool_result` "
                   f"blocks immediately after: {waiting}, or the reverse: {results}")
            demand(set(kinds[:len(results)]) <= {"tool_result"}, "tool_result blocks must come first")
            waiting = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
            demand(not waiting or body.get("tools"), "tools: required where there are tool_use blocks")
            demand(not seen & set(waiting) and len(set(waiting)) == len(waiting), "`tool_use` ids must be unique")
            seen |= set(waiting)
        demand(message["role"] == "user", "messages: the last one must be the user's")

    @staticmethod
    def blocks(turn):
        if turn.thinking:
            yield {"type": "thinking", "thinking": turn.thinking, "signature": turn.sign}
        if turn.text:
            yield {"type": "text", "text": turn.text}
        for i, name, arguments in turn.calls:
            yield {"type": "tool_use", "id": i, "name": name, "input": as_object(arguments)}

    @staticmethod
    def reason(turn):
        return {"cut": "max_tokens", "refused": "refusal"}.get(turn.stop, "tool_use" if turn.calls else "end_turn")

    @classmethod
    def whole(cls, turn):
        return {"id": "msg_1", "type": "message", "role": "assistant", "content": list(cls.blocks(turn)),
                "stop_reason": cls.reason(turn),
                "usage": {"input_tokens": turn.usage[0], "output_tokens": turn.usage[1]}}

    @classmethod
    def events(cls, turn, cut_text, cut_arguments):
        def say(kind, **more):
            return event({"type": kind, **more}, kind)

        def delta(n, kind, **more):
            return say("content_block_delta", index=n, delta={"type": kind, **more})

        arguments = iter([a for _, _, a in turn.calls])
        yield say("message_start", message={"id": "msg_1", "role": "assistant", "content": [],
                                            "usage": {"input_tokens": turn.usage[0], "output_tokens": 1}})
        yield say("ping")
        for n, block in enumerate(cls.blocks(turn)):
            empty = {"text": "", "thinking": "", "signature": "", "input": {}}
            yield say("content_block_start", index=n, content_block=block | {k: empty[k] for k in empty if k in block})
            if block["type"] == "text":
                yield from (delta(n, "text_delta", text=p) for p in cut_text(turn.text))
            elif block["type"] == "thinking":
                yield from (delta(n, "thinking_delta", thinking=p) for p in cut_text(turn.thinking))
                yield delta(n, "signature_delta", signature=turn.sign)
            else:
                yield from (delta(n, "input_json_delta", partial_json=p) for p in ["", *cut_arguments(next(arguments))])
            yield say("content_block_stop", index=n)
        yield say("message_delta", delta={"stop_reason": cls.reason(turn)}, usage={"output_tokens": turn.usage[1]})
        yield say("message_stop")

    @classmethod
    def failure(cls, message):
        return event(cls.error(529, message), "error")


# ---- generateContent ----

class Gemini:
    name, base = "gemini", "/v1beta"
    path = re.compile(r"/v1beta/models/([^/:]+):(streamGenerateContent\?alt=sse|generateContent)")

    @staticmethod
    def key(headers):
        return headers.get("x-goog-api-key")

    @staticmethod
    def streams(path, body):
        return "streamGenerateContent" in path

    @staticmethod
    def error(status, message):
        kind = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
                503: "UNAVAILABLE"}.get(status, "INTERNAL")
        return {"error": {"code": status, "message": message, "status": kind}}

    @staticmethod
    def fresh(body):
        return body["contents"][-1:]

    @staticmethod
    def pictures(body):
        return '"inlineData"' in json.dumps(body["contents"])

    @staticmethod
    def check_part(part, role, where):
        known(where, part, "text inlineData functionCall functionResponse thought thoughtSignature")
        data = [k for k in part if k not in ("thought", "thoughtSignature")]
        demand(len(data) == 1, f"{where}: required oneof field 'data' must have one initialized field")
        kind, value = data[0], part[data[0]]
        if kind == "text":
            text_of(value, where, blank=True)
        elif kind == "inlineData" and role == "user":
            check_picture(value.get("mimeType"), value.get("data"))
        elif kind == "functionCall" and role == "model":
            text_of(value.get("name"), where)
            demand(isinstance(value.get("args", {}), dict), f"{where}: args is not a Struct")
        else:
            demand(kind == "functionResponse" and role == "user", f"{where}: {kind} in a content of {role}")
            demand(isinstance(value.get("response"), dict), f"{where}: response is not a Struct")

    @classmethod
    def check(cls, path, headers, body):
        known("request", body, "contents systemInstruction tools generationConfig")
        for part in body.get("systemInstruction", {}).get("parts", []):
            text_of(part.get("text"), "systemInstruction")
        for tool in body.get("tools", []):
            for function in tool["functionDeclarations"]:
                check_function(function, "parameters")
                demand("additionalProperties" not in function["parameters"], 'Unknown name "additionalProperties"')
        strict = "gemini-3" in path
        calls = []
        demand(body.get("contents"), "contents is not specified")
        for i, content in enumerate(body["contents"]):
            known("contents", content, "role parts")
            demand(content.get("role") == ("user", "model")[i % 2], "contents: roles must alternate, user first")
            demand(content.get("parts"), "contents.parts must not be empty")
            for k, part in enumerate(content["parts"]):
                cls.check_part(part, content["role"], f"contents[{i}].parts[{k}]")
            answers = [p["functionResponse"] for p in content["parts"] if "functionResponse" in p]
            demand([(a.get("name"), a.get("id")) for a in answers] == [(c.get("name"), c.get("id")) for c in calls],
                   "Please ensure that the number of function response parts is equal to the number of function call "
                   "parts of the function call turn.")
            signed = [p for p in content["parts"] if "functionCall" in p]
            demand(not strict or not signed or signed[0].get("thoughtSignature"),
                   "Function call is missing a thought_signature in functionCall parts.")
            calls = [p["functionCall"] for p in signed]
        demand(content["role"] == "user", "contents: the last one must be the user's")

    @staticmethod
    def end(turn):
        return {"cut": "MAX_TOKENS", "refused": "SAFETY"}.get(turn.stop, "STOP")

    @staticmethod
    def calls(turn):
        for n, (i, name, arguments) in enumerate(turn.calls):
            part = {"functionCall": {"name": name, "args": as_object(arguments)}}
            if turn.thinking:
                part["functionCall"]["id"] = i
                if n == 0:
                    part["thoughtSignature"] = turn.sign
            yield part

    @classmethod
    def chunk(cls, turn, parts, last):
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}}
        if last:
            candidate["finishReason"] = cls.end(turn)
        return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": turn.usage[0],
                                                             "candidatesTokenCount": turn.usage[1]}}

    @classmethod
    def whole(cls, turn):
        return cls.chunk(turn, ([{"text": turn.text}] if turn.text else []) + list(cls.calls(turn)), True)

    @classmethod
    def events(cls, turn, cut_text, cut_arguments):
        if turn.thinking:
            yield event(cls.chunk(turn, [{"text": turn.thinking, "thought": True}], False))
        for piece in cut_text(turn.text):
            yield event(cls.chunk(turn, [{"text": piece}], False))
        for part in cls.calls(turn):
            yield event(cls.chunk(turn, [part], False))
        yield event(cls.chunk(turn, [{"text": ""}], True))

    @classmethod
    def failure(cls, message):
        return event(cls.error(503, message))


PROTOCOLS = {p.name: p for p in (Chat, Responses, Messages, Gemini)}
