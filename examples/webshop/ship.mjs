// Ships the parcels of the web shop.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { Worker } from "@thole/client";

const url = new URL(process.env.THOLE_NATS_URL ?? "nats://127.0.0.1:4222"); // may have user and password
const nc = await connect({ servers: url.host, user: url.username || undefined, pass: url.password || undefined, maxReconnectAttempts: -1 });
const worker = new Worker(nc, {
  namespace: process.env.THOLE_NAMESPACE ?? "default",
  queue: "parcels",
  activities: {
    async ship(task) {
      const order = JSON.parse(task.input.toString());
      await sleep(order.ship_ms ?? 20, undefined, { signal: task.signal });
      console.log(`shipped ${task.instance}`);
      return JSON.stringify({ order: order.order, parcel: `P-${order.order}` });
    },
  },
});
process.once("SIGTERM", () => void worker.stop());
await worker.run();
await nc.close();
