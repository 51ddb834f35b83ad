// DBOS Transact, embedded: DATABASE POOL IN_FLIGHT SECONDS WARM_UP.
import { DBOS } from '@dbos-inc/dbos-sdk';
import { measure } from '../load.mjs';

const echo = async (input) => input;

const chain = DBOS.registerWorkflow(async (input) => {
    let value = input;
    for (let i = 0; i < 5; i++) value = await DBOS.runStep(() => echo(value), { name: 'echo' });
    return value;
}, { name: 'chain' });

const [systemDatabaseUrl, pool] = process.argv.slice(2);
DBOS.setConfig({ name: 'peer', systemDatabaseUrl, systemDatabasePoolSize: Number(pool), logLevel: 'error' });
await DBOS.launch();
await measure(async (input) => {
    const handle = await DBOS.startWorkflow(chain, { workflowID: `${process.pid}-${input}` })(input);
    return await handle.getResult();
});
