// Starts an instance and waits for it: npm run build, then node example/client.mjs
import { connect } from "@nats-io/transport-node";
import { Client, Status, TholeError } from "@thole/client";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
const client = new Client(nc, { namespace: "default" });
try {
  await client.start("checkout", { instance: "order-1", input: JSON.stringify({ amount: 42 }) });
} catch (err) {
  if (!(err instanceof TholeError && err.status === Status.CONFLICT)) throw err; // started before
}
await client.signal("order-1", "paid", "yes");
const outcome = await client.wait("order-1", { timeoutMs: 60_000 });
console.log(outcome.state, outcome.output.toString(), outcome.text);
await nc.close();
