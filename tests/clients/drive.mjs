// One of the official clients, with all that is tried with it: a line of JSON on standard output for each thing tried.
//
//   node drive.mjs '{"kind": "old|new-legacy|new-modern", "tries": "retort|fixtures", "names": […],
//                    "url": URL, "token": TOKEN}'                   or "command": […] for standard input and output
import { connect } from './kinds.mjs';
import * as fixtures from './tries_fixtures.mjs';
import * as retort from './tries_retort.mjs';

const task = JSON.parse(process.argv[2]);
const tries = { retort, fixtures }[task.tries];
const answers = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
const say = (entry) => console.log(JSON.stringify(entry));

const client = await connect(task.kind, task, task.tries === 'fixtures' ? answers : {});
// The tools' list first: then the clients check structured results against what it promises.
client.tools = (await client.inner.listTools()).tools;
for (const name of task.names) {
    const began = performance.now();
    let error;
    try {
        await tries[name](client);
    } catch (e) {
        error = String(e?.stack ?? e);
    }
    say({ name, error, seconds: (performance.now() - began) / 1000 });
}
const began = performance.now();
await client.inner.close();
say({ name: 'close', seconds: (performance.now() - began) / 1000, errors: client.errors });
process.exit(0); // whatever may still be open
