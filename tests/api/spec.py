"""src/gate/openapi.json as a judge: whatever the server says is held against it, and what was never said is known."""
import json
import os
import re
import urllib.parse

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(HERE, "../../src/gate/openapi.json")
with open(PATH) as f:
    DESCRIPTION = json.load(f)

METHODS = ("get", "put", "post", "delete", "head", "patch", "options")
seen = set()  # (method, path, status)


def follow(thing):
    while isinstance(thing, dict) and "$ref" in thing and thing["$ref"].startswith("#/components/"):
        target = DESCRIPTION
        for part in thing["$ref"][2:].split("/"):
            target = target[part]
        thing = target
    return thing


def operations():
    for path, item in DESCRIPTION["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def pattern_of(path):
    parts = re.split(r"(\{\w+\})", path)
    return "".join("(.+)" if p == "{path}" else "([^/]+)" if p.startswith("{") else re.escape(p) for p in parts)


PATTERNS = [(re.compile(pattern_of(path)), path) for path in sorted(DESCRIPTION["paths"], key=lambda p: "{path}" in p)]


def find(method, target):
    """The path as described, and the operation; None where there is none."""
    raw = target.split("?")[0]
    for regex, path in PATTERNS:
        if regex.fullmatch(raw) or regex.fullmatch(urllib.parse.unquote(raw, errors="replace").replace("\n", " ")):
            return path, DESCRIPTION["paths"][path].get("get" if method == "HEAD" else method.lower())
    return None, None


def same_document(schema):
    """With the components beside it, so that references lead somewhere."""
    return {"components": DESCRIPTION["components"], "$schema": "https://json-schema.org/draft/2020-12/schema",
            "allOf": [schema]}


def validate(value, schema, what):
    errors = sorted(jsonschema.Draft202012Validator(same_document(schema)).iter_errors(value), key=str)
    if errors:
        worst = jsonschema.exceptions.best_match(errors)
        at = "/".join(map(str, worst.absolute_path))
        raise AssertionError(f"{what} is not as described: at {at or 'its root'}: {worst.message[:1000]}")


def check_headers(headers, described, what):
    for name, header in described.get("headers", {}).items():
        header = follow(header)
        value = headers.get(name)
        if value is None:
            assert not header.get("required"), f"{what}: no {name}"
        else:
            validate(value, header["schema"], f"{what}: {name}")


ERROR = {"$ref": "#/components/schemas/Error"}


def check(method, target, answer):
    path, operation = find(method, target)
    what = f"{method} {path or target[:200]}: {answer.status}"
    content_type = answer.headers.get("Content-Type", "")
    if operation is None:
        wanted = 404 if path is None else 405
        # 401, 403, 421 come before anybody looks for the path.
        assert answer.status in (wanted, 400, 401, 403, 421, 503), f"{what}: no such call is described"
        assert wanted != 405 or answer.status != 405 or answer.headers.get("Allow"), f"{what}: no Allow"
        if method != "HEAD":
            validate(answer.json, ERROR, what)
        return
    assert str(answer.status) in operation["responses"], f"{what} is not described: {answer}"
    seen.add((method, path, answer.status))
    described = follow(operation["responses"][str(answer.status)])
    check_headers(answer.headers, described, what)
    if method == "HEAD":
        assert answer.body == b"", f"{what}: HEAD with a body"
        return
    contents = described.get("content")
    if contents is None:
        assert answer.body == b"", f"{what}: a body that is not described"
        return
    bare = content_type.split(";")[0].strip()
    assert bare in contents or "*/*" in contents, f"{what}: {content_type!r} is not described"
    schema = contents.get(bare, contents.get("*/*"))["schema"]
    if bare.endswith("json") and bare in contents:
        assert content_type in (bare, f"{bare}; charset=utf-8"), f"{what}: {content_type!r}"
        validate(json.loads(answer.body.decode()), schema, what)


def check_stream(path, response):
    found, operation = find("POST", path)
    assert operation, f"{path} is not described"
    seen.add(("POST", found, response.status))
    contents = follow(operation["responses"]["200"])["content"]
    assert response.headers["Content-Type"].split(";")[0] == "text/event-stream", response.headers.items()
    assert "text/event-stream" in contents


EVENTS = DESCRIPTION["components"]["responses"]["CellDone"]["content"]["text/event-stream"]["x-events"]


def check_event(name, data):
    assert name in EVENTS, f"an event that is not described: {name}"
    validate(data, EVENTS[name], f"event {name}")
    if name in ("stdout", "stderr", "display", "result"):
        assert data["type"] == name, f"event {name} with {data['type']}"
