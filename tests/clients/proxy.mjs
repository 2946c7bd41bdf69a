// Passes everything on to another server, with a token added, and nothing changed: not the case of headers, not Host or
// Origin. A side that goes away takes the other with it. Ends with its standard input.
//
//   node proxy.mjs http://ADDRESS:PORT TOKEN       prints its own http://127.0.0.1:PORT
import http from 'node:http';

const [target, token] = process.argv.slice(2);
const to = new URL(target);

const server = http.createServer((asked, answer) => {
    const headers = [...asked.rawHeaders, 'Authorization', `Bearer ${token}`];
    const passed = http.request({ host: to.hostname, port: to.port, method: asked.method, path: asked.url, headers, agent: false });
    passed.on('response', (got) => {
        answer.writeHead(got.statusCode, got.statusMessage, got.rawHeaders);
        answer.flushHeaders();
        got.pipe(answer);
        got.on('error', () => answer.destroy());
    });
    passed.on('error', () => answer.destroy());
    answer.on('close', () => passed.destroy());
    asked.pipe(passed);
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume().on('end', () => process.exit(0));
