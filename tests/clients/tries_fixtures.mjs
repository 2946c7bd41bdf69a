// What is tried with each client on the fixtures: a server that asks back, and a client that answers.
import assert from 'node:assert/strict';
import { PATIENCE } from './kinds.mjs';

function listen(client, seen = []) {
    client.onRequest('elicitation/create', (request) => {
        seen.push(request.params.message);
        return { action: 'accept', content: { name: 'Alice', color: 'blue', ok: true, username: 'alice', email: 'alice@example.com' } };
    });
    client.onRequest('sampling/createMessage', () => (
        { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'none', stopReason: 'endTurn' }));
    client.onRequest('roots/list', () => ({ roots: [{ uri: 'file:///somewhere' }] }));
    return seen;
}

async function call(client, name, args = {}, options = {}) {
    const result = await client.callTool({ name, arguments: args }, { timeout: PATIENCE, ...options });
    assert.ok(!result.isError, JSON.stringify(result));
    return result.content.map((c) => c.text).join('');
}

export async function ask_user(client) {
    const seen = listen(client);
    if (client.era === 'modern') {
        assert.match(await call(client, 'test_input_required_result_elicitation'), /Hello, Alice/);
        assert.deepEqual(seen, ['What is your name?']);
    } else {
        assert.match(await call(client, 'test_elicitation', { message: 'Who?' }), /alice@example\.com/);
        assert.deepEqual(seen, ['Who?']);
    }
}

export async function ask_model(client) {
    listen(client);
    const name = client.era === 'modern' ? 'test_input_required_result_sampling' : 'test_sampling';
    assert.match(await call(client, name, client.era === 'modern' ? {} : { prompt: 'Capital?' }), /Paris/);
}

export async function several_rounds(client) {
    if (client.era !== 'modern') return;
    const seen = listen(client);
    await call(client, 'test_input_required_result_multi_round');
    assert.equal(seen.length, 2);
    await call(client, 'test_input_required_result_multiple_inputs');
    assert.match(await call(client, 'test_input_required_result_request_state'), /state-ok/);
}

export async function steps(client) {
    const told = [];
    await call(client, 'test_tool_with_progress', {}, { onprogress: (p) => told.push(p.progress) });
    // The clients drop what they read from a pipe together with the answer.
    const all = [0, 50, 100];
    assert.deepEqual(told, client.stdio ? all.slice(0, told.length) : all);
}

export async function prompts(client) {
    const { prompts: listed } = await client.inner.listPrompts();
    assert.ok(listed.some((p) => p.name === 'test_simple_prompt'));
    const { messages } = await client.inner.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'one', arg2: 'two' } });
    assert.match(messages[0].content.text, /one.*two/);
}
