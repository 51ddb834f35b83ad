// The golden messages of proto/golden, read and written as this client does: docs/wire.md, "Golden bytes". After `npm run build`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { ActivityFailure, Client, LATER, TholeError, Worker } from "../dist/index.js";
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

/** A worker of a gateway that gives these answers, by operation; others are {}. */
async function working(answers, activities = {}, options = {}) {
  const warned = [];
  const nc = connection(async (subject) => {
    const operation = subject.includes(".open.") ? "open" : subject.slice(subject.lastIndexOf(".") + 1);
    const given = answers[operation]?.shift?.() ?? (operation === "open" ? opened : {});
    if (operation === "next" && !given.tasks) await tick(20);
    return given;
  });
  const worker = new Worker(nc, { queue: "orders", activities, warn: (text) => warned.push(text), ...options });
  const done = worker.run();
  const sent = (operation) => nc.sent.filter(({ subject }) => subject.includes(".open.") ? operation === "open" : subject.endsWith(`.${operation}`));
  const until = async (is) => { while (!is()) await tick(2); };
  return { nc, worker, warned, sent, until, end: async (limitMs) => { await worker.stop(limitMs); await done; } };
}
const tick = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const opened = { session: "s", subject: "gw.s", leaseMs: 10000, renewMs: 30 };

test("every message is known", () => {
  const known = `OpenSession SessionOpened NextTasks Tasks Task RenewTasks RunningTask TasksRenewed Notice CompleteTasks Outcome TaskFailure
    TasksCompleted OutcomeResult CloseSession SessionClosed StartInstance InstanceStarted SignalInstance EndInstance Accepted QueryInstance
    QueryResult WaitInstance InstanceOutcome DescribeInstance InstanceDescription InstanceInfo Hindrance ListInstances InstanceList CompleteActivity`.split(/\s+/);
  assert.deepEqual([...new Set(lines.map(({ kind }) => kind))].sort(), known.sort());
});

test("requests of a client", async () => {
  for (const { name, kind, json } of of("StartInstance", "SignalInstance", "EndInstance", "QueryInstance", "DescribeInstance", "ListInstances", "CompleteActivity")) {
    const nc = connection();
    const client = new Client(nc);
    const { instance = "", reason = "", version, requestId = "", requireKnown } = json;
    const event = "eventData" in json ? { event: "e", eventData: bytes(json.eventData) } : {};
    if (kind === "StartInstance") await client.start("o", { instance: instance || undefined, input: bytes(json.input), version, requestId, requireKnown, ...event });
    if (kind === "DescribeInstance") await client.describe(instance);
    if (kind === "ListInstances") {
      const { behindInstance, behindCreatedMs, ...filter } = json; // 64 bits: as they are given
      await client.list({ ...filter, behind: { instance: behindInstance, createdMs: behindCreatedMs } });
    }
    if (kind === "CompleteActivity" && json.failure) {
      await client.failActivity(json.token, json.failure); // with final, which does not count
    } else if (kind === "CompleteActivity") {
      await client.completeActivity(json.token ?? "", bytes(json.output));
    }
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
  assert.deepEqual(plain(nc.sent[0].body), json);
  const explained = of("WaitInstance").find(({ name }) => name === "WaitInstance, explained").json;
  await new Client(nc).wait(explained.instance, { timeoutMs: 9000 });
  assert.deepEqual({ ...nc.sent[1].body, waitMs: explained.waitMs }, explained);
});

test("answers to a client", async () => {
  for (const { name, kind, json } of of("InstanceStarted", "QueryResult", "Accepted", "InstanceOutcome", "InstanceDescription", "InstanceList")) {
    const client = new Client(connection(json), { timeoutMs: 50, waitLimitMs: 50 });
    const asked = { InstanceStarted: () => client.start("o"), QueryResult: () => client.query("i", "q"), Accepted: () => client.cancel("i"),
      InstanceOutcome: () => client.wait("i"), InstanceDescription: () => client.describe("i"), InstanceList: () => client.list() }[kind]();
    const { status = 0, text = "" } = json;
    const whole = (info = {}) => ({ ...info, ...Object.fromEntries(["execution", "createdMs", "updatedMs", "turns", "openActivities", "openTimers"]
      .map((key) => [key, Number(info[key] ?? 0)])) });
    if (kind === "InstanceOutcome" && ["completed", "failed", "cancelled", "terminated"].includes(json.state)) {
      const got = await asked;
      assert.deepEqual(plain({ ...got, output: base64(got.output) }), plain(json), name);
    } else if (status !== 0 || kind === "InstanceOutcome") {
      await assert.rejects(asked, (err) => err instanceof TholeError && err.status === status && err.message.includes(text)
        && (status !== 11 || [err.state, err.reason, err.nextStep].join() === [json.state, json.reason, json.nextStep].join()), name);
    } else if (kind === "InstanceDescription") {
      assert.deepEqual(plain(await asked), plain({ ...whole(json.info), hindrances: json.hindrances }), name);
    } else if (kind === "InstanceList") {
      assert.deepEqual(plain(await asked), plain((json.instances ?? []).map(whole)), name);
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
    const { worker, sent, until, end } = await working({ next: [json] }, {}, { slots: 8 });
    await until(() => sent("next").length > 1);
    assert.deepEqual(sent("next")[0].body, of("NextTasks").find(({ name }) => name === "NextTasks").json);
    const claims = (json.tasks ?? []).map(({ claim }) => claim).filter(Boolean);
    await until(() => worker.hand.size === 0 || claims.length === 0 || sent("complete").length >= claims.length);
    assert.deepEqual(sent("complete").map(({ body }) => body.outcomes[0].claim).slice(0, claims.length), claims, name);
    await end(0);
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
    const worker = new Worker(connection(), { queue: "orders", activities: {} });
    const held = new Held({ claim: json.claim }, 8);
    worker.hand.set(held.claim, held);
    worker.notify(json);
    const { kind, reason, graceMs } = held.task.signal.reason ?? {};
    assert.deepEqual(plain({ claim: json.claim, kind, reason, graceMs }), plain(json), name);
  }
});

test("renewals, and what an open says is gone", () => {
  for (const { name, json } of of("TasksRenewed", "SessionOpened").filter(({ json }) => !json.status)) {
    const worker = new Worker(connection(), { queue: "orders", activities: {}, warn() {} });
    const claims = new Set([...(json.cancelled ?? []).map(({ claim }) => claim), ...(json.gone ?? [])].filter(Boolean));
    const hand = [...claims].map((claim) => new Held({ claim }, 8));
    for (const held of hand) worker.hand.set(held.claim, held);
    worker.renewed(performance.now(), json);
    for (const held of hand) assert.equal(worker.hand.has(held.claim), !(json.gone ?? []).includes(held.claim), name);
    for (const held of hand) assert.equal(held.task.signal.aborted, true, name);
    worker.lose("the test ends");
  }
});

test("outcomes", async () => {
  for (const { name, json } of of("Outcome")) {
    const { claim = "", output, failure: why, cancelled, later } = json;
    if ([output, why, cancelled, later].filter((is) => is !== undefined).length !== 1) continue;
    const held = new Held({ claim, token: "t" }, 1 << 20);
    if (cancelled) held.cancel("requested", "", 0);
    await held.run(() => {
      if (json.heartbeat) held.task.heartbeat(bytes(json.details));
      if (cancelled) throw new Error("as cancelled");
      if (later) return LATER;
      if (why) throw new ActivityFailure(why.text ?? "", { type: why.type, final: why.final });
      return bytes(output);
    });
    if (/^[A-Za-z0-9_.-]*$/.test(why?.type ?? "") && why?.text !== undefined | !why) assert.deepEqual(plain(held.outcome), plain(json), name);
  }
  for (const { name, json } of of("OutcomeResult").filter(({ json }) => ![9, 11].includes(json.status))) {
    const { warned, sent, until, end } = await working({ next: [{ tasks: [{ claim: "7", activity: "a" }] }], complete: [{ results: [json] }] }, { a: () => "ok" });
    await until(() => sent("complete").length > 0);
    await end(0);
    assert.deepEqual(sent("complete").map(({ body }) => body), [{ outcomes: [{ claim: "7", output: base64(Buffer.from("ok")) }] }]);
    assert.equal(warned.length, [0, undefined].includes(json.status) ? 0 : 1, name);
    if (warned.length > 0) assert.ok(warned[0].endsWith(`${json.status} ${json.text}`), name);
  }
});

test("a session", async () => {
  const wanted = of("OpenSession").find(({ name }) => name === "OpenSession").json;
  const golden = of("SessionOpened").find(({ name }) => name === "SessionOpened").json;
  const limitMs = of("CloseSession").find(({ name }) => name === "CloseSession").json.limitMs;
  const ran = [];
  const activities = Object.fromEntries(wanted.activities.map((name) => [name, async ({ signal }) => {
    ran.push(name);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  }]));
  const tasks = wanted.claims.map((claim) => ({ claim, activity: wanted.activities[0] }));
  const first = { ...opened, session: wanted.resume };
  const { sent, until, end } = await working({ open: [first, golden], next: [{ tasks }, { status: 9, text: "stopping" }] }, activities,
    { name: wanted.worker, slots: wanted.slots });
  await until(() => sent("open").length > 1 && sent("next").some(({ subject }) => subject === `${golden.subject}.next`));
  await end(limitMs);
  const { inbox, host, ...resumed } = sent("open")[1].body;
  assert.ok(inbox.length > 0 && host.length > 0);
  assert.deepEqual({ ...resumed, inbox: wanted.inbox, host: wanted.host }, wanted);
  assert.deepEqual(sent("open")[0].body.claims, []);
  assert.equal(ran.length, wanted.claims.length);
  const close = sent("close")[0];
  assert.equal(close.subject, `${golden.subject}.close`);
  assert.ok(close.body.limitMs > limitMs - 5000 && close.body.limitMs <= limitMs);
  assert.deepEqual(Object.keys(close.body), ["limitMs"]);
});
