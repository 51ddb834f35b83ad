// A worker of queue "payments": npm run build, then node example/worker.mjs
import { connect } from "@nats-io/transport-node";
import { ActivityFailure, Worker } from "@thole/client";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222", maxReconnectAttempts: -1 });
const worker = new Worker(nc, {
  namespace: "default",
  queue: "payments",
  name: "payments-1",
  slots: 20,
  activities: {
    async charge(task) {
      const { card, amount } = JSON.parse(task.input.toString());
      if (amount <= 0) throw new ActivityFailure("the amount is not positive", { type: "bad_amount", final: true });
      const answer = await fetch("https://payments.example/charges", {
        method: "POST",
        headers: { "Idempotency-Key": task.key },
        body: JSON.stringify({ card, amount }),
        signal: task.signal, // ends when the task is cancelled
      });
      if (!answer.ok) throw new Error(`the bank answers ${answer.status}`); // another try
      return answer.text();
    },
    async import(task) {
      const rows = JSON.parse(task.input.toString());
      for (let i = Number(task.details); i < rows.length; i++) { // details: of the heartbeat before; none is 0
        task.signal.throwIfAborted();
        // … import rows[i] …
        task.heartbeat(String(i + 1));
      }
    },
  },
});
process.once("SIGTERM", () => void worker.stop());
process.once("SIGINT", () => void worker.stop());
await worker.run();
await nc.close();
