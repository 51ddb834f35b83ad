// Starts a checkout and waits for it: npm run build, then node example/client.mjs [ORDER], with THOLE_NATS_URL, THOLE_NAMESPACE.
import { connect } from "@nats-io/transport-node";
import { Client, Status, TholeError } from "@thole/client";

const order = process.argv[2] ?? "17";
const instance = `order-${order}`;
const url = new URL(process.env.THOLE_NATS_URL ?? "nats://127.0.0.1:4222"); // may have user and password
const nc = await connect({ servers: url.host, user: url.username || undefined, pass: url.password || undefined });
const client = new Client(nc, { namespace: process.env.THOLE_NAMESPACE });
try {
  await client.start("checkout", { instance, input: `order=${order};pay_ms=50` });
} catch (err) {
  if (!(err instanceof TholeError && err.status === Status.CONFLICT)) throw err;
  console.log("it was started before");
}
const outcome = await client.wait(instance, { timeoutMs: 60_000 });
console.log(outcome.state, outcome.output.toString(), outcome.text);
await nc.close();
