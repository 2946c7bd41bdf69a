// The official clients, made alike: the old SDK, which speaks the revisions with a handshake, and the new one, which speaks
// those and the one without.
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OldStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as OldHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as old from '@modelcontextprotocol/sdk/types.js';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const ME = { name: 'retort-tests', version: '1.0.0' };
export const PATIENCE = 120_000; // ms: more than anything here takes on a slow machine

// What both can be asked for by the client's own name for it, or by the schema of it.
const SCHEMAS = {
    'notifications/resources/updated': old.ResourceUpdatedNotificationSchema,
    'notifications/resources/list_changed': old.ResourceListChangedNotificationSchema,
    'elicitation/create': old.ElicitRequestSchema,
    'sampling/createMessage': old.CreateMessageRequestSchema,
    'roots/list': old.ListRootsRequestSchema,
};

function transport(target, Stdio, Http) {
    if (target.url)
        return new Http(new URL(target.url), { requestInit: { headers: { Authorization: `Bearer ${target.token}` } } });
    return new Stdio({ command: target.command[0], args: target.command.slice(1), stderr: 'inherit' });
}

// kind: "old", "new-legacy" or "new-modern". The client has the methods of the new SDK's.
export async function connect(kind, target, capabilities = {}) {
    const errors = [];
    let client;
    if (kind === 'old') {
        const inner = new OldClient(ME, { capabilities });
        inner.onerror = (e) => errors.push(String(e));
        await inner.connect(transport(target, OldStdio, OldHttp), { timeout: PATIENCE });
        client = {
            inner,
            era: 'legacy',
            callTool: (params, options) => inner.callTool(params, undefined, options),
            onNotification: (name, handler) => inner.setNotificationHandler(SCHEMAS[name], handler),
            onRequest: (name, handler) => inner.setRequestHandler(SCHEMAS[name], handler),
        };
    } else {
        const mode = kind === 'new-modern' ? 'auto' : 'legacy';
        const inner = new Client(ME, { capabilities, versionNegotiation: { mode, probe: { timeoutMs: PATIENCE } } });
        inner.onerror = (e) => errors.push(String(e));
        await inner.connect(transport(target, StdioClientTransport, StreamableHTTPClientTransport), { timeout: PATIENCE });
        client = {
            inner,
            era: inner.getProtocolEra(),
            callTool: (params, options) => inner.callTool(params, options),
            onNotification: (name, handler) => inner.setNotificationHandler(name, handler),
            onRequest: (name, handler) => inner.setRequestHandler(name, handler),
        };
    }
    return { ...client, kind, errors, stdio: !target.url };
}
