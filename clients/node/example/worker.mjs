// Serves the activities of the orchestration checkout (examples/checkout.c): npm run build, then node example/worker.mjs,
// with THOLE_NATS_URL, THOLE_NAMESPACE, THOLE_QUEUE.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { ActivityFailure, Worker } from "@thole/client";

/** The number behind "key=" in "order=17;pay_ms=50". */
function field(text, key, fallback) {
  const found = text.toString().split(";").find((pair) => pair.startsWith(`${key}=`));
  return found ? Number(found.slice(key.length + 1)) : fallback;
}

/** Must do nothing for what was never done. It only says that it was here. */
const undo = (task) => `${task.activity} of order ${field(task.input, "order", 0)}`;

const url = new URL(process.env.THOLE_NATS_URL ?? "nats://127.0.0.1:4222"); // may have user and password
const nc = await connect({ servers: url.host, user: url.username || undefined, pass: url.password || undefined, maxReconnectAttempts: -1 });
const worker = new Worker(nc, {
  namespace: process.env.THOLE_NAMESPACE ?? "default",
  queue: process.env.THOLE_QUEUE ?? "default",
  activities: {
    reserve: (task) => `goods-${field(task.input, "order", 0)}`,
    /** A card that takes its time. A real one would send task.key along, so that it is charged once however often this runs. */
    async charge(task) {
      if (task.tryNumber <= field(task.input, "busy", 0)) throw new Error("the bank does not answer"); // another try
      await sleep(field(task.input, "pay_ms", 50), undefined, { signal: task.signal }); // throws when the task is cancelled
      if (field(task.input, "declined", 0)) throw new ActivityFailure("the card was declined", { type: "declined", final: true });
      return "charged";
    },
    ship: (task) => `parcel with ${task.input}`,
    release: undo,
    refund: undo,
  },
});
process.once("SIGTERM", () => void worker.stop());
process.once("SIGINT", () => void worker.stop());
await worker.run();
await nc.close();
