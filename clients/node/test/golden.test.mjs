// The golden messages of proto/golden, read and written as this client does: docs/wire.md, "Golden bytes". After `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { ActivityFailure, Client, TholeError, Worker } from "../dist/index.js";
import { failure, Session, success } from "../dist/session.js";
import { Held } from "../dist/task.js";

const folder = process.env.THOLE_GOLDEN ? `file://${process.env.THOLE_GOLDEN}/` : new URL("../../../proto/golden/", import.meta.url);
const lines = JSON.parse(readFileSync(new URL("gateway.json", folder), "utf8"))
  .map(({ name, type, json }) => ({ name, kind: type.replace("thole.v1.", ""), json }));
const of = (...kinds) => lines.filter(({ kind }) => kinds.includes(kind));
const traces = ["traceparent", "tracestate"]; // of a start: they are headers

/** Without the members that have their defaults. */
function plain(value, without = []) {
  if (Array.isArray(value)) return value.map((item) => plain(item, without));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value)
    .filter(([key, item]) => !without.includes(key) && !["", 0, "0", false, null, undefined].includes(item) && item?.length !== 0)
    .map(([key, item]) => [key, plain(item, without)]));
}
const bytes = (text = "") => Buffer.from(text, "base64");
const base64 = (data) => data.toString("base64");

/** A connection that keeps what is sent, and gives the answer. */
function connection(answer = {}) {
  const nc = { sent: [], info: { max_payload: 1 << 20 }, status: () => (async function* () {})(), closed: () => new Promise(() => {}),
    subscribe: (subject, options) => { nc.notice = options.callback; return { unsubscribe() {} }; },
    request: async (subject, body) => {
      nc.sent.push({ subject, body: JSON.parse(body) });
      const given = typeof answer === "function" ? await answer(subject) : answer;
      return { string: () => JSON.stringify(given) };
    } };
  return nc;
}

/** A session in an owner that keeps what it is told. */
function session(opened, answer = {}) {
  const told = { taken: [], warned: [], sent: [] };
  const link = { maxPayload: 1 << 20, isConnected: true,
    request: async (subject, body) => { told.sent.push({ subject, body: JSON.parse(JSON.stringify(body)) }); return { status: 0, text: "", ...answer }; } };
  const owner = { take: (of, held) => told.taken.push(held), changed() {}, fatal(err) { throw err; }, warn: (text) => told.warned.push(text) };
  const made = new Session(owner, link, { status: 0, text: "", subject: "s", leaseMs: 10000, renewMs: 3000, graceMs: 0, ...opened },
    { unsubscribe() {} }, performance.now());
  return { made, told };
}

test("every message is known", () => {
  const known = `OpenSession SessionOpened NextTasks Tasks Task RenewTasks RunningTask TasksRenewed Notice CompleteTasks Outcome TaskFailure
    TasksCompleted OutcomeResult CloseSession SessionClosed StartInstance InstanceStarted SignalInstance EndInstance Accepted QueryInstance
    QueryResult WaitInstance InstanceOutcome`.split(/\s+/);
  assert.deepEqual([...new Set(lines.map(({ kind }) => kind))].sort(), known.sort());
});

test("requests of a client", async () => {
  for (const { name, kind, json } of of("StartInstance", "SignalInstance", "EndInstance", "QueryInstance")) {
    const nc = connection();
    const client = new Client(nc);
    const { instance = "", reason = "", version, requestId = "" } = json;
    if (kind === "StartInstance") await client.start("o", { instance, input: bytes(json.input), version, requestId });
    if (kind === "SignalInstance") await client.signal(instance, "e", bytes(json.data), { requestId });
    if (kind === "EndInstance") await client.cancel(instance, reason, { requestId });
    if (kind === "EndInstance") await client.terminate(instance, reason, { requestId });
    if (kind === "QueryInstance") await client.query(instance, "q", bytes(json.input));
    for (const { body } of nc.sent) assert.deepEqual(plain(body), plain(json, traces), name);
    assert.ok(nc.sent.length > 0);
  }
  const nc = connection({ state: "completed" });
  const { json } = of("WaitInstance").find(({ name }) => name === "WaitInstance");
  await new Client(nc).wait(json.instance, { timeoutMs: 60000 });
  assert.deepEqual(nc.sent[0].body, json);
});

test("answers to a client", async () => {
  for (const { name, kind, json } of of("InstanceStarted", "QueryResult", "Accepted", "InstanceOutcome")) {
    const client = new Client(connection(json), { timeoutMs: 50 });
    const asked = { InstanceStarted: () => client.start("o"), QueryResult: () => client.query("i", "q"), Accepted: () => client.cancel("i"),
      InstanceOutcome: () => client.wait("i") }[kind]();
    const { status = 0, text = "" } = json;
    if (kind === "InstanceOutcome" && json.state && json.state !== "running" && status !== 11) {
      const got = await asked;
      assert.deepEqual(plain({ ...got, output: base64(got.output) }), plain(json), name);
    } else if (status !== 0 || kind === "InstanceOutcome") {
      await assert.rejects(asked, (err) => err instanceof TholeError && err.status === status && err.message.includes(text), name);
    } else if (kind === "InstanceStarted") {
      assert.equal(await asked, json.instance ?? "", name);
    } else if (kind === "QueryResult") {
      assert.deepEqual(await asked, bytes(json.output), name);
    } else {
      await asked;
    }
  }
});

test("tasks", async () => {
  for (const { name, json } of of("Task")) {
    const { task } = new Held({ claim: "", ...json }, 8);
    const got = { ...task, claim: json.claim, execution: String(task.execution), activityId: String(task.activityId),
      input: base64(task.input), details: base64(task.details) };
    assert.deepEqual(plain(got, ["signal", "heartbeat", "timeoutMs"]), plain(json, ["timeoutMs"]), name);
    assert.equal(task.timeoutMs, Number(json.timeoutMs ?? 0), name);
  }
  for (const { name, json } of of("Tasks").filter(({ json }) => !json.status)) {
    const { made, told } = session({}, json);
    assert.equal(await made.next(8, 10000), 0);
    assert.deepEqual(told.sent.map(({ body }) => body), of("NextTasks").filter(({ name }) => name === "NextTasks").map(({ json }) => json));
    assert.deepEqual(told.taken.map(({ claim }) => claim), (json.tasks ?? []).map(({ claim }) => claim).filter(Boolean), name);
    made.end("shutdown", "");
  }
});

test("running tasks and notices", () => {
  for (const { name, json } of of("RunningTask")) {
    const held = new Held({ claim: json.claim ?? "" }, 1 << 20);
    if (json.heartbeat) held.task.heartbeat(bytes(json.details));
    assert.deepEqual(plain(held.running(1 << 20).message), plain(json), name);
  }
  for (const { name, json: golden } of of("Notice")) {
    const json = { claim: "7", ...golden };
    const held = new Held({ claim: json.claim }, 8);
    const { made } = session({});
    made.hand.set(held.claim, held);
    made.notice(json);
    const { kind, reason, graceMs } = held.task.signal.reason ?? {};
    assert.deepEqual(plain({ claim: json.claim, kind, reason, graceMs }), plain(json), name);
    made.end("shutdown", "");
  }
});

test("renewals", async () => {
  for (const { name, json } of of("TasksRenewed").filter(({ json }) => !json.status)) {
    const { made } = session({}, json);
    const claims = new Set([...(json.cancelled ?? []).map(({ claim }) => claim), ...(json.gone ?? [])]);
    const hand = [...claims].filter(Boolean).map((claim) => new Held({ claim }, 8));
    for (const held of hand) made.hand.set(held.claim, held);
    made.renew();
    await new Promise(setImmediate);
    for (const held of hand) assert.equal(held.isLost, (json.gone ?? []).includes(held.claim), name);
    for (const held of hand) assert.equal(held.task.signal.aborted, true, name);
    made.end("shutdown", "");
  }
});

test("outcomes", async () => {
  for (const { name, json } of of("Outcome")) {
    const { claim = "", output, failure: why, cancelled } = json;
    if ([output, why, cancelled].filter((is) => is !== undefined).length !== 1) continue;
    const got = why ? failure(claim, why.text ?? "", why.type ?? "", why.final ?? false) : cancelled ? { claim, cancelled } : success(claim, bytes(output));
    if (/^[A-Za-z0-9_.-]*$/.test(why?.type ?? "")) assert.deepEqual(plain(got), plain(json), name);
    const { made, told } = session({}, { results: [{ claim }] });
    const held = new Held({ claim }, 8);
    await made.complete(held, got);
    assert.deepEqual(told.sent.map(({ body }) => body), [{ outcomes: [got] }].map((body) => JSON.parse(JSON.stringify(body))), name);
    made.end("shutdown", "");
  }
  for (const { name, json } of of("OutcomeResult").filter(({ json }) => ![9, 11].includes(json.status))) {
    const { made, told } = session({}, { results: [json] });
    await made.complete(new Held({ claim: "7" }, 8), success("7", "ok"));
    assert.deepEqual(told.warned, [0, 14, undefined].includes(json.status) ? [] : [`an outcome was refused: ${json.status} ${json.text}`], name);
    made.end("shutdown", "");
  }
});

test("a session", async () => {
  const wanted = of("OpenSession").find(({ name }) => name === "OpenSession").json;
  const opened = of("SessionOpened").find(({ name }) => name === "SessionOpened").json;
  const limitMs = of("CloseSession").find(({ name }) => name === "CloseSession").json.limitMs;
  const nc = connection(async (subject) => {
    if (subject.includes(".open.")) return opened;
    if (subject.endsWith(".next")) await new Promise(setImmediate);
    return {};
  });
  const activities = Object.fromEntries(wanted.activities.map((name) => [name, () => { throw new ActivityFailure("no"); }]));
  const worker = new Worker(nc, { queue: "orders", name: wanted.worker, slots: wanted.slots, activities });
  const done = worker.run();
  while (!nc.sent.some(({ subject }) => subject.endsWith(".next"))) await new Promise(setImmediate);
  await Promise.all([worker.stop(limitMs), done]);
  const { inbox, ...sent } = nc.sent[0].body;
  assert.ok(inbox.length > 0);
  assert.deepEqual({ ...sent, inbox: wanted.inbox }, wanted);
  const close = nc.sent.find(({ subject }) => subject === `${opened.subject}.close`);
  assert.ok(close.body.limitMs > limitMs - 5000 && close.body.limitMs <= limitMs);
  assert.deepEqual(Object.keys(close.body), ["limitMs"]);
});
