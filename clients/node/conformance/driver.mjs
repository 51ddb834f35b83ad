// The driver of the conformance kit (../../conformance/README.md) for this library.
import { createInterface } from "node:readline";
import { connect } from "@nats-io/transport-node";
import { ActivityFailure, Client, jsonActivity, LATER, Status, TholeError, Worker } from "../dist/index.js";

const namespace = process.env.THOLE_NAMESPACE;
const nc = await connect({ servers: process.env.NATS_URL, maxReconnectAttempts: -1, waitOnFirstConnect: true, reconnectTimeWait: 100,
  reconnectJitter: 0 });
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

function ended(task) {
  const { kind, reason, graceMs } = task.signal.reason;
  print({ event: "cancelled", instance: task.instance, kind, reason, grace_ms: graceMs });
  return task.signal.reason;
}

const pause = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
});

const activities = {
  echo: (task) => task.input,
  bytes: (task) => Buffer.from(task.input).reverse(),
  big: (task) => Buffer.alloc(Number(task.input), "x"),
  fail: (task) => { throw new ActivityFailure("no", { type: "declined", final: task.input.toString() === "final" }); },
  throw: (task) => { throw new TypeError(task.input.toString()); },
  notify: async (task) => { task.heartbeat(task.input); throw new ActivityFailure("no", { type: "declined" }); },
  hangup: async () => { await nc.close(); },
  panic: () => { throw new TypeError("the driver panics"); },
  key: (task) => task.key,
  resume: (task) => task.details,
  trace: (task) => `${task.traceparent} ${task.tracestate}`,
  json: jsonActivity(({ n, text }) => ({ n: n + 1, text: `${text}!` })),
  later: (task) => {
    print({ event: "later", instance: task.instance, token: task.token });
    return LATER;
  },
  deadline: (task) => task.timeoutMs ? String(task.timeoutMs) : "none",
  async sleep(task) {
    await pause(Number(task.input), task.signal);
    if (task.signal.aborted) throw ended(task);
    return task.input;
  },
  async stubborn(task) {
    await pause(Number(task.input));
    return "done";
  },
  async beat(task) {
    const n = Number(task.input);
    for (let i = 1; i <= n; i++) {
      task.heartbeat(String(i));
      await pause(50, task.signal);
      if (task.signal.aborted) throw ended(task);
    }
    return String(n);
  },
};

async function work() {
  const worker = new Worker(nc, { namespace, queue: process.env.THOLE_QUEUE, name: "conf-worker", slots: 4, stopLimitMs: 3000, activities });
  let stops = 0;
  process.on("SIGTERM", () => (++stops > 1 ? process.exit(1) : void worker.stop()));
  await worker.run();
}

async function command(client, { op, timeout_ms, ...c }) {
  const timeoutMs = timeout_ms || undefined;
  const input = Buffer.from(c.input ?? "", "base64");
  switch (op) {
    case "start": return { instance: await client.start(c.orchestration, { instance: c.instance || undefined, input, version: c.version, requireKnown: c.require_known,
      event: c.event, eventData: Buffer.from(c.event_data ?? "", "base64"), timeoutMs }) };
    case "signal": return { note: await client.signal(c.instance, c.event, input, { timeoutMs }) };
    case "cancel": return { note: await client.cancel(c.instance, c.reason, { timeoutMs }) };
    case "terminate": return client.terminate(c.instance, c.reason, { timeoutMs });
    case "query": return { output: await client.query(c.instance, c.query, input, { timeoutMs }) };
    case "wait": return client.wait(c.instance, { timeoutMs });
    case "describe": {
      const { state, reason, hindrances } = await client.describe(c.instance, { timeoutMs });
      return { state, reason, nextStep: hindrances[0]?.nextStep };
    }
    case "list": {
      const behind = c.behind_instance && { instance: c.behind_instance, createdMs: c.behind_created_ms };
      const page = await client.list({ states: c.states, orchestration: c.orchestration, idPrefix: c.id_prefix, parent: c.parent, limit: c.limit, behind, timeoutMs });
      return { instances: page.map(({ instance }) => instance) };
    }
    case "complete": return client.completeActivity(c.token, Buffer.from(c.output ?? "", "base64"), { timeoutMs });
    case "fail": return client.failActivity(c.token, { text: c.text, type: c.error_type }, { timeoutMs });
    default: throw new TholeError(Status.INVALID, `there is no ${op}`);
  }
}

async function commands() {
  let asked = {};
  const trace = (carrier) => Object.assign(carrier, { traceparent: asked.traceparent, tracestate: asked.tracestate });
  const client = new Client(nc, { namespace, actor: process.env.CONF_ACTOR, vouchedActor: process.env.CONF_VOUCHED, name: process.env.CONF_CLIENT, trace,
    waitLimitMs: Number(process.env.CONF_WAIT_MS) || undefined });
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === "") continue;
    asked = JSON.parse(line);
    let result;
    try {
      result = (await command(client, asked)) ?? {};
    } catch (err) {
      if (!(err instanceof TholeError)) throw err;
      result = { status: err.status, text: err.message, state: err.state, reason: err.reason, nextStep: err.nextStep };
    }
    print({ id: asked.id, status: result.status ?? 0, text: result.text ?? "", instance: result.instance ?? asked.instance ?? "",
      output: (result.output ?? Buffer.alloc(0)).toString("base64"), state: result.state ?? "", error_type: result.errorType ?? "",
      reason: result.reason, next_step: result.nextStep, note: result.note, instances: result.instances });
  }
}

try {
  await (process.env.CONF_MODE === "client" ? commands() : work());
  process.exit(0);
} catch (err) {
  process.stderr.write(`${err.stack}\n`);
  process.exit(1);
}
