// The client of Restate: INGRESS_URL IN_FLIGHT SECONDS WARM_UP. The idempotency key makes a call what the id of an instance is
// elsewhere: it runs once.
import { connect, rpc } from '@restatedev/restate-sdk-clients';
import { measure } from '../load.mjs';

const chain = connect({ url: process.argv[2] }).serviceClient({ name: 'chain' });
await measure((input) => chain.run(input, rpc.opts({ idempotencyKey: `${process.pid}-${input}` })));
