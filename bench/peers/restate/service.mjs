// The service of Restate: PORT ADMIN_URL.
import * as restate from '@restatedev/restate-sdk';

const echo = async (input) => input;

const chain = restate.service({
    name: 'chain',
    handlers: {
        run: async (ctx, input) => {
            let value = input;
            for (let i = 0; i < 5; i++) value = await ctx.run('echo', () => echo(value));
            return value;
        },
    },
});

const [port, admin] = process.argv.slice(2);
await restate.serve({ services: [chain], port: Number(port) });
const answer = await fetch(`${admin}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
});
if (!answer.ok) throw new Error(`the service is not registered: ${await answer.text()}`);
console.log('registered');
