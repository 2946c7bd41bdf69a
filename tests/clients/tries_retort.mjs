// What is tried with each client on retort's own tools. Each has a session of its own, and throws what is wrong.
import assert from 'node:assert/strict';
import { PATIENCE } from './kinds.mjs';

const NAMES = ['end_session', 'fork', 'list_files', 'read_file', 'rollback', 'run_python', 'write_file'];

function text(result) {
    return result.content.filter((c) => c.type === 'text').map((c) => c.text).join('\n');
}

function call(client, name, args, options = {}) {
    return client.callTool({ name, arguments: args }, { timeout: PATIENCE, ...options });
}

// What succeeds.
async function good(client, name, args, options) {
    const result = await call(client, name, args, options);
    assert.ok(!result.isError, `${name} failed: ${text(result)}`);
    assert.equal(typeof result.structuredContent?.session, 'string', `${name} names no session`);
    return result;
}

// What fails in a way that a model can read about.
async function bad(client, name, args, pattern) {
    const result = await call(client, name, args);
    assert.equal(result.isError, true, `${name} ${JSON.stringify(args)} is no error: ${text(result)}`);
    assert.match(text(result), pattern);
    return result;
}

async function run(client, code, session, options) {
    return good(client, 'run_python', session ? { code, session } : { code }, options);
}

async function session(client, code = 'pass') {
    return (await run(client, code)).structuredContent.session;
}

async function until(condition, what) {
    const end = performance.now() + PATIENCE;
    while (!condition()) {
        assert.ok(performance.now() < end, `${what} did not come`);
        await new Promise((go) => setTimeout(go, 50));
    }
}

export async function hello(client) {
    assert.equal(client.era, client.kind === 'new-modern' ? 'modern' : 'legacy');
    const server = client.inner.getServerVersion();
    assert.equal(server.name, 'retort');
    assert.match(server.version, /^\d+\.\d+/);
    assert.ok(client.inner.getInstructions()?.length > 0, 'no instructions');
    const capabilities = client.inner.getServerCapabilities();
    assert.ok(capabilities.tools && capabilities.resources, JSON.stringify(capabilities));
    assert.equal(capabilities.prompts, undefined);
    if (client.era === 'legacy') await client.inner.ping();
}

export async function tools(client) {
    assert.deepEqual(client.tools.map((t) => t.name).sort(), NAMES);
    const by = Object.fromEntries(client.tools.map((t) => [t.name, t]));
    for (const tool of client.tools) {
        assert.ok(tool.title && tool.description, tool.name);
        assert.equal(tool.inputSchema.additionalProperties, false, tool.name);
        assert.equal(tool.inputSchema.properties.session.type, 'string', tool.name);
        assert.equal(tool.inputSchema.properties.session['x-mcp-header'], 'Session', tool.name);
        assert.ok(tool.outputSchema.required.includes('session'), tool.name);
        const { readOnlyHint, destructiveHint, openWorldHint } = tool.annotations;
        assert.equal(openWorldHint, false, tool.name);
        assert.equal(readOnlyHint, ['list_files', 'read_file'].includes(tool.name), tool.name);
        if (['end_session', 'rollback'].includes(tool.name)) assert.equal(destructiveHint, true, tool.name);
        if (tool.name === 'fork') assert.equal(destructiveHint, false, tool.name);
    }
    assert.deepEqual(by.run_python.inputSchema.required, ['code']);
    assert.ok(by.list_files.inputSchema.required.includes('session'));
}

export async function state(client) {
    const first = await run(client, 'x = 41');
    const id = first.structuredContent.session;
    assert.ok(text(first).includes(id), 'a new session is not named in the text');
    const second = await run(client, 'x + 1', id);
    assert.equal(second.structuredContent.session, id);
    assert.equal(second.structuredContent.status, 'ok');
    assert.match(text(second), /42/);
    const other = await call(client, 'run_python', { code: 'x' });
    assert.ok(other.isError, 'a session that was not named shares its state');
}

export async function error(client) {
    const id = await session(client, 'kept = 7');
    const found = await bad(client, 'run_python', { code: 'def deep(n):\n    return 1 / n\n\ndeep(0)', session: id }, /ZeroDivisionError/);
    assert.match(text(found), /Traceback/);
    assert.match(text(found), /deep\(0\)/);
    assert.match(text(found), /return 1 \/ n/);
    assert.match(text(await run(client, 'kept', id)), /7/);
}

export async function image(client) {
    const code = 'import matplotlib.pyplot as plt\nplt.figure(figsize=(40, 10), dpi=100)\nplt.plot([1, 3, 2])\nplt.show()';
    const result = await run(client, code);
    const images = result.content.filter((c) => c.type === 'image');
    assert.equal(images.length, 1, text(result));
    assert.equal(images[0].mimeType, 'image/png');
    const png = Buffer.from(images[0].data, 'base64');
    assert.equal(png.subarray(1, 4).toString('latin1'), 'PNG');
    const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
    assert.ok(width <= 1568 && width > 1000, `it is ${width} wide`);
    assert.ok(Math.abs(width / height - 4) < 0.4, `${width} × ${height}`); // its margins are cut
    assert.ok(png.length <= 1 << 20, `${png.length} bytes`);
}

export async function file(client) {
    const code = 'import os\nos.makedirs("out", exist_ok=True)\n'
        + 'open("out/números & 100%.csv", "w").write("a,b\\n1,ü\\n")\nopen("raw.bin", "wb").write(bytes(range(256)))';
    const result = await run(client, code);
    const id = result.structuredContent.session;
    const links = result.content.filter((c) => c.type === 'resource_link');
    assert.equal(links.length, 2, JSON.stringify(result.content));
    for (const link of links) assert.ok(link.uri.startsWith(`retort://${id}/`), link.uri);
    const csv = links.find((l) => l.name.endsWith('.csv'));
    const raw = links.find((l) => l.name.endsWith('.bin'));
    assert.match(csv.mimeType, /^text\/csv/);
    assert.equal(raw.size, 256);
    assert.deepEqual(result.structuredContent.files.map((f) => f.uri).sort(), [csv.uri, raw.uri].sort());

    const read = (await client.inner.readResource({ uri: csv.uri })).contents[0];
    assert.equal(read.uri, csv.uri);
    assert.equal(read.text, 'a,b\n1,ü\n');
    const bytes = (await client.inner.readResource({ uri: raw.uri })).contents[0];
    assert.deepEqual(Buffer.from(bytes.blob, 'base64'), Buffer.from(Array.from({ length: 256 }, (_, i) => i)));

    const listed = (await client.inner.listResources()).resources;
    for (const link of links) assert.ok(listed.some((r) => r.uri === link.uri && r.name), `${link.uri} is not listed`);
    const templates = (await client.inner.listResourceTemplates()).resourceTemplates;
    assert.ok(templates.some((t) => t.uriTemplate === 'retort://{session}/{+path}'), JSON.stringify(templates));
    const files = (await good(client, 'list_files', { session: id })).structuredContent.files;
    assert.deepEqual(files.map((f) => f.uri).sort(), [csv.uri, raw.uri].sort());
}

export async function no_such_resource(client) {
    const id = await session(client);
    for (const uri of [`retort://${id}/absent`, 'retort://nobody/a.txt', `retort://${id}/../../etc/passwd`, 'file:///etc/passwd', 'x']) {
        await assert.rejects(client.inner.readResource({ uri }), (e) => {
            assert.equal(e.code, client.kind === 'old' ? -32002 : -32602, `${uri}: ${e}`); // the new client knows both
            return true;
        });
    }
}

export async function write_and_read(client) {
    const written = await good(client, 'write_file', { path: 'in/notes.txt', text: 'först\nthen\n' });
    const id = written.structuredContent.session;
    assert.equal(written.structuredContent.created, true);
    assert.match(text(await run(client, 'open("in/notes.txt").read()', id)), /först/);
    const again = await good(client, 'write_file', { path: 'in/notes.txt', base64: Buffer.from('0123456789'.repeat(10)).toString('base64'), session: id });
    assert.equal(again.structuredContent.created, false);
    assert.equal(again.structuredContent.size, 100);
    const part = await good(client, 'read_file', { session: id, path: 'in/notes.txt', offset: 95, limit: 3 });
    assert.match(text(part), /567/);
    assert.equal(part.structuredContent.size, 100);
    assert.equal(part.structuredContent.next_offset, 98);
    await run(client, 'from PIL import Image\nImage.new("RGB", (30, 20), "red").save("red.png")\nopen("raw", "wb").write(b"\\xff\\x00\\xfe")', id);
    const picture = await good(client, 'read_file', { session: id, path: 'red.png' });
    assert.equal(picture.content.find((c) => c.type === 'image').mimeType, 'image/png');
    const raw = await good(client, 'read_file', { session: id, path: 'raw' });
    assert.deepEqual(Buffer.from(raw.content.find((c) => c.type === 'resource').resource.blob, 'base64'), Buffer.from([0xff, 0, 0xfe]));
    await bad(client, 'read_file', { session: id, path: 'absent' }, /no such file/);
    await bad(client, 'read_file', { session: id, path: '../../etc/passwd' }, /./);
}

export async function progress(client) {
    const told = [];
    const code = 'import time\nfor i in range(4):\n    print("line", i, flush=True)\n    time.sleep(0.5)\n"over"';
    const result = await run(client, code, undefined, { onprogress: (p) => told.push(p), resetTimeoutOnProgress: true });
    const before = told.length;
    assert.match(text(result), /over/);
    assert.ok(before > 0, 'no progress before the result');
    for (let i = 1; i < told.length; i++) assert.ok(told[i].progress > told[i - 1].progress, JSON.stringify(told));
    assert.match(told.map((p) => p.message).join(''), /line 0\nline 1\n/);
}

export async function no_progress_unasked(client) {
    const before = client.errors.length;
    await run(client, 'print("x" * 1000)');
    assert.deepEqual(client.errors.slice(before), []);
}

export async function cancel(client) {
    const id = await session(client, 'kept = 1');
    const controller = new AbortController();
    const code = 'kept = 2\nprint("begun", flush=True)\nimport time\ntime.sleep(100)\nkept = 3';
    const call = run(client, code, id, { signal: controller.signal, onprogress: () => controller.abort('enough') });
    await assert.rejects(call);
    const began = performance.now();
    assert.match(text(await run(client, '("kept", kept)', id)), /\('kept', 2\)/);
    assert.ok(performance.now() - began < 60_000, 'the cell went on after it was cancelled');
}

export async function time_limit(client) {
    const id = await session(client, 'kept = 5');
    await bad(client, 'run_python', { code: 'while True: pass', session: id, timeout: 1 }, /1 s|time/i);
    assert.match(text(await run(client, 'kept', id)), /5/);
}

export async function states(client) {
    const id = await session(client, 'a = 1');
    const cell = (await run(client, 'a = 2', id)).structuredContent.cell;
    await run(client, 'a = 3', id);
    const back = await good(client, 'rollback', { session: id, to: cell });
    assert.equal(back.structuredContent.to, cell);
    assert.match(text(await run(client, '("a", a)', id)), /\('a', 2\)/);
    const { sessions } = (await good(client, 'fork', { session: id, count: 2 })).structuredContent;
    assert.equal(new Set([...sessions, id]).size, 3);
    for (const [i, one] of sessions.entries()) assert.match(text(await run(client, `a += ${10 * (i + 1)}\n("a", a)`, one)), new RegExp(`'a', ${12 + 10 * i}\\)`));
    assert.match(text(await run(client, '("a", a)', id)), /\('a', 2\)/);
    await bad(client, 'rollback', { session: id, to: 4711 }, /./);
}

export async function end(client) {
    const id = await session(client, 'a = 1');
    const fresh = (await good(client, 'end_session', { session: id, reset: true })).structuredContent;
    assert.equal(fresh.ended, id);
    assert.notEqual(fresh.session, id);
    await bad(client, 'run_python', { code: 'a', session: fresh.session }, /NameError/);
    await bad(client, 'run_python', { code: 'a', session: id }, /session/);
    assert.equal((await good(client, 'end_session', { session: fresh.session })).structuredContent.ended, true);
    await bad(client, 'run_python', { code: '1', session: fresh.session }, /session/);
    await bad(client, 'list_files', { session: fresh.session }, /session/);
}

export async function wrong_arguments(client) {
    await bad(client, 'run_python', {}, /code/);
    await bad(client, 'run_python', { code: 7 }, /code/);
    await bad(client, 'run_python', { code: '1', colour: 'red' }, /colour/);
    await bad(client, 'run_python', { code: '1', timeout: -1 }, /timeout/);
    await bad(client, 'run_python', { code: '1', session: 'no such session' }, /session/);
    await bad(client, 'write_file', { path: 'a' }, /text|base64/);
    await bad(client, 'write_file', { path: 'a', base64: '!' }, /base64/);
    await assert.rejects(call(client, 'no_such_tool', {}), (e) => e.code === -32602);
}

export async function at_once(client) {
    const results = await Promise.all([1, 2, 3].map((n) => run(client, `import time; time.sleep(1); ${n} * 1000`)));
    results.forEach((result, i) => assert.match(text(result), new RegExp(`${(i + 1) * 1000}`)));
    assert.equal(new Set(results.map((r) => r.structuredContent.session)).size, 3);
}

export async function updates(client) {
    const first = await run(client, 'open("watched.txt", "w").write("1")');
    const id = first.structuredContent.session;
    const { uri } = first.content.find((c) => c.type === 'resource_link');
    const told = [];
    client.onNotification('notifications/resources/updated', (n) => void told.push(n.params.uri));
    let subscription;
    if (client.era === 'modern') {
        subscription = await client.inner.listen({ resourceSubscriptions: [uri] }, { timeout: PATIENCE });
        assert.deepEqual(subscription.honoredFilter.resourceSubscriptions, [uri]);
    } else await client.inner.subscribeResource({ uri });
    await run(client, 'open("other.txt", "w").write("1")', id);
    await run(client, 'open("watched.txt", "w").write("2")', id);
    await until(() => told.length > 0, 'word of the change');
    assert.deepEqual([...new Set(told)], [uri]);
    if (subscription) await subscription.close();
    else await client.inner.unsubscribeResource({ uri });
    await run(client, 'open("watched.txt", "w").write("3")', id);
    assert.equal((await client.inner.readResource({ uri })).contents[0].text, '3');
}

export async function much_output(client) {
    const result = await run(client, 'print("y" * 3_000_000)\nprint("the end")');
    assert.ok(text(result).length < 200_000, `${text(result).length} characters`);
    assert.match(text(result), /the end/);
}

export async function many_pictures(client) {
    const code = 'from PIL import Image\nfor i in range(7):\n    display(Image.new("RGB", (3000, 40 + i), (i, 0, 0)))';
    const result = await run(client, code);
    const images = result.content.filter((c) => c.type === 'image');
    assert.equal(images.length, 4, text(result));
    assert.match(text(result), /3/); // how many more there are
}

// A client reads at most 10 MiB in one line, whatever that is as a file: base64 is longer than bytes, escapes than text.
export async function big_files(client) {
    const result = await run(client, 'for n in (6, 12): open(f"{n}.bin", "wb").write(b"\\xff" * (n << 20))\n'
        + 'open("lines.txt", "w").write("\\n" * (6 << 20))\nopen("controls.txt", "w").write("\\x01" * (3 << 20))');
    const link = (name) => result.content.find((c) => c.type === 'resource_link' && c.name === name).uri;
    const read = async (name) => (await client.inner.readResource({ uri: link(name) })).contents[0];
    assert.equal(Buffer.from((await read('6.bin')).blob, 'base64').length, 6 << 20);
    await assert.rejects(read('12.bin'), /read_file/);
    for (const [name, size] of [['lines.txt', 6 << 20], ['controls.txt', 3 << 20]]) {
        let found;
        try {
            found = await read(name);
        } catch (e) {
            assert.match(String(e), /read_file/, name);
            continue;
        }
        assert.equal(found.text?.length ?? Buffer.from(found.blob, 'base64').length, size);
    }
    const part = await good(client, 'read_file', { session: result.structuredContent.session, path: 'lines.txt' });
    assert.ok(part.structuredContent.next_offset > 0);
    assert.match(text(await run(client, '"still there"', result.structuredContent.session)), /still there/);
}
