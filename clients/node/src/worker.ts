import { hostname } from "node:os";
import { createInbox, type NatsConnection, type Subscription } from "@nats-io/transport-node";
import { name, TholeError } from "./errors.js";
import { call, linkOf, listed, NO_ANSWER, Pause, sleep, Status, type Answer, type Notice } from "./gateway.js";
import { DETAILS_MAX, Held, type Activity } from "./task.js";

const ANSWER_MS = 5_000; // for open and renew; no more than a third of the lease
const NEXT_MORE_MS = 5_000; // that next may take beyond its wait
const STORE_MS = 10_000; // for complete
const CLOSE_MORE_MS = 10_000;
const PAYLOAD_MAX = 256 * 1024;

export interface WorkerOptions {
  queue: string;
  activities: Record<string, Activity>;
  /** "default" if it is left out. */
  namespace?: string;
  /** [A-Za-z0-9_-]{1,64}, shown in logs and lists. */
  name?: string;
  /** Tasks at a time: 10 if it is left out. */
  slots?: number;
  /** How long a request for tasks waits at the gateway: 10 s if it is left out, at most 60 s. */
  waitMs?: number;
  /** How long tasks may go on when the worker stops: 30 s if it is left out. */
  stopLimitMs?: number;
  /** Takes warnings, for example of lost tasks; console.warn if it is left out. */
  warn?: (text: string) => void;
}

/** Runs activities of one queue. */
export class Worker {
  readonly options: Required<WorkerOptions>;
  readonly hand = new Map<string, Held>(); // until an outcome is stored or refused, or the claim is lost
  private ended = new Map<string, number>(); // claims that were in hand, and when they ended: a task may come twice
  private session: Session | undefined; // the newest one, which may not be open yet, or not any more
  resume = ""; // the last one that was opened, until its lease is over
  leaseMs = 0;
  private leaseEnd = 0;
  private leaseTimer: NodeJS.Timeout | undefined;
  payloadMax = PAYLOAD_MAX;
  detailsMax = DETAILS_MAX;
  busy = 0; // slots: of tasks in hand, and of activities that run on for lost ones
  stopBy: number | undefined; // what runs is to end then: the worker stops
  private wake: () => void = () => {};
  private error: Error | undefined;
  private finished: Promise<void> | undefined;

  constructor(readonly nc: NatsConnection, options: WorkerOptions) {
    this.options = {
      namespace: "default", name: "node-worker", slots: 10, waitMs: 10_000, stopLimitMs: 30_000,
      warn: (text) => console.warn(`thole: ${text}`), ...options,
    };
    for (const what of ["namespace", "queue", "name"] as const) name(what, this.options[what]);
    for (const activity of Object.keys(this.options.activities)) name("activity", activity);
    linkOf(nc);
  }

  /** Works until `stop`, or `signal` aborts, which stops gracefully; rejects when the gateway refuses this worker. */
  run(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) void this.stop();
    signal?.addEventListener("abort", () => void this.stop(), { once: true });
    return (this.finished ??= this.work());
  }

  /** Takes no new tasks, lets running ones end for up to the limit, and then tells them to. Ends `run`. */
  stop(limitMs = this.options.stopLimitMs): Promise<void> {
    if (this.stopBy === undefined) {
      this.stopBy = performance.now() + limitMs;
      this.session?.stop();
      this.changed();
    }
    return this.finished ?? Promise.resolve();
  }

  private async work(): Promise<void> {
    void this.nc.closed().then((err) => this.fatal(err ?? new Error("the NATS connection is closed")));
    const pause = new Pause();
    while (!this.error && (this.stopBy === undefined || this.hand.size > 0)) {
      const session = this.session = new Session(this);
      await session.run();
      if (session.isClosed) break;
      if (session.used) pause.reset(); // another one at once
      else await Promise.race([sleep(pause.next()), this.hand.size > 0 ? new Promise(() => {}) : this.change()]);
    }
    this.lose("the worker ends");
    if (this.error) throw this.error;
  }

  /** The gateway refuses this worker. */
  fatal(err: Error): void {
    this.error ??= err;
    this.session?.end();
    this.changed();
  }

  /** Waits until a slot may be free, the session is over, or the worker stops. */
  change(): Promise<void> { return new Promise((resolve) => { this.wake = resolve; }); }
  changed(): void { this.wake(); }

  // ---- the lease ----

  /** How long an answer to open or renew may take. */
  get patienceMs(): number { return Math.min(ANSWER_MS, this.leaseMs / 3 || ANSWER_MS); }

  /** What was sent then has been answered. */
  renewed(sentAt: number, answer: Answer): void {
    this.leaseEnd = sentAt + this.leaseMs;
    clearTimeout(this.leaseTimer);
    this.leaseTimer = setTimeout(() => this.leaseIsOver(), Math.ceil(this.leaseEnd - performance.now()) + 1);
    for (const notice of listed(answer.cancelled)) this.notify(notice);
    for (const claim of listed(answer.gone)) this.drop(this.hand.get(claim), "its claim is gone");
    for (const [claim, at] of this.ended) if (performance.now() - at > this.leaseMs) this.ended.delete(claim);
  }

  /** Whether the lease is over; then all is lost. The timer asks, and whoever is about to go by the lease: the process may have been
   *  stopped for long, and the timer need not be what runs first then. */
  leaseIsOver(): boolean {
    const over = this.resume !== "" && performance.now() >= this.leaseEnd;
    if (over) this.lose("no gateway answered for a lease");
    return over;
  }

  /** Ends the session for good: what is in hand is lost, and the next session is a new one. */
  private lose(why: string): void {
    for (const held of this.hand.values()) this.drop(held, why);
    this.ended.clear();
    this.resume = "";
    clearTimeout(this.leaseTimer);
    this.session?.end();
  }

  // ---- tasks in hand ----

  /** Runs a task, unless its claim is known: it may come twice. */
  begin(held: Held): void {
    if (this.hand.has(held.claim) || this.ended.has(held.claim)) return;
    const { activities } = this.options, { activity } = held.task;
    this.hand.set(held.claim, held);
    this.busy++;
    void held.run(Object.hasOwn(activities, activity) ? activities[activity] : undefined).then(() => {
      if (this.hand.get(held.claim) !== held) this.release(); // it was lost
      else this.session?.deliver(held);
    });
  }

  notify(notice: Notice | null): void {
    this.hand.get(notice?.claim ?? "")?.cancel(notice?.kind ?? "", notice?.reason ?? "", notice?.graceMs ?? 0);
  }

  /** Gives a claim up: its activity is to end, nothing is sent for it. */
  private drop(held: Held | undefined, why: string): void {
    if (!held) return;
    this.options.warn(`${held.task.activity} of ${held.task.instance} is lost: ${why}`);
    held.cancel("lease_lost", why, 0);
    this.forget(held);
  }

  /** Its outcome is stored or refused, or it is lost. */
  forget(held: Held): void {
    if (this.hand.get(held.claim) !== held) return;
    this.hand.delete(held.claim);
    this.ended.set(held.claim, performance.now());
    if (held.outcome) this.release();
  }

  private release(): void {
    this.busy--;
    this.changed();
  }
}

/** One with one gateway. When that does not answer, or does not go on, it ends, and the next one takes its tasks over. */
class Session {
  isClosed = false;
  used = false; // an operation has been answered
  private subject = ""; // empty: it is not open yet
  private isOver = false;
  private renewMs = 0;
  private finish: () => void = () => {};

  private readonly cuts: number; // of the connection when it was opened
  private inbox: Subscription | undefined; // its own: of a task that was moved the old gateway says that it is lost

  constructor(private readonly worker: Worker) {
    this.cuts = linkOf(worker.nc).cuts;
  }

  /** Works until the session ends. */
  run(): Promise<void> {
    return new Promise((resolve) => {
      this.finish = resolve;
      this.work().catch((err: Error) => this.worker.fatal(err));
    });
  }

  end(): void {
    this.isOver = true;
    this.inbox?.unsubscribe();
    this.finish();
    this.worker.changed();
  }

  /** The worker stops. */
  stop(): void {
    if (this.subject !== "") void this.close();
    else if (this.worker.hand.size === 0) this.end(); // there is nothing to open it for any more
  }

  private async work(): Promise<void> {
    if (this.worker.leaseIsOver() || !(await this.open())) return this.end();
    if (this.worker.stopBy !== undefined) this.stop();
    await Promise.all([this.takeTasks(), this.renewals()]);
  }

  /** Goes on with the tasks of the session before it, unless the lease of that is over. */
  private async open(): Promise<boolean> {
    const { worker } = this, { namespace, queue, name, slots, activities } = worker.options;
    const inbox = createInbox((worker.nc as { options?: { inboxPrefix?: string } }).options?.inboxPrefix);
    this.inbox = worker.nc.subscribe(inbox, { callback: (err, message) => { if (!err) this.noticeArrived(parsed(message.data)); } });
    const sentAt = performance.now();
    const answer = await call(worker.nc, `thole.${namespace}.gateway.open.${queue}`, {
      worker: name, slots, activities: Object.keys(activities), inbox, host: hostname().slice(0, 64),
      resume: worker.resume, claims: [...worker.hand.keys()],
    }, worker.patienceMs);
    if (this.isOver || worker.leaseIsOver()) return false; // the answer is for tasks that are lost by now
    const { status, text, subject, session, leaseMs = 0, renewMs = 0, payloadMax, detailsMax } = answer;
    if (status === Status.INVALID || status === Status.DENIED) worker.fatal(new TholeError(status, `open: ${text}`));
    if (status !== Status.OK || !subject || !session || leaseMs <= 0) return false;
    worker.resume = session;
    worker.leaseMs = leaseMs;
    worker.payloadMax = Math.min(Number(payloadMax ?? 0) || PAYLOAD_MAX, Math.floor(((worker.nc.info?.max_payload ?? 1 << 20) - 1024) * 3 / 4));
    worker.detailsMax = detailsMax || DETAILS_MAX;
    this.subject = subject;
    this.renewMs = renewMs > 0 && renewMs <= leaseMs / 2 ? renewMs : leaseMs / 3;
    worker.renewed(sentAt, answer);
    for (const held of worker.hand.values()) this.deliver(held);
    return true;
  }

  /** Makes a request, and ends the session if that has no answer or the gateway does not go on. */
  private async call(operation: string, body: object, timeoutMs: number): Promise<Answer> {
    const { worker } = this;
    if (this.isOver || worker.leaseIsOver()) return { status: NO_ANSWER, text: "the session is over" };
    const answer = await call(worker.nc, `${this.subject}.${operation}`, body, timeoutMs), { status, text } = answer;
    if (this.isOver) return { status: NO_ANSWER, text: "the session is over" };
    if (status === Status.OK) this.used = true;
    else if (status === Status.INVALID && operation === "complete") return answer; // it is about the outcome
    else if (status === Status.INVALID || status === Status.DENIED) worker.fatal(new TholeError(status, `${operation}: ${text}`));
    else if (status === NO_ANSWER || status === Status.NOT_FOUND || (status === Status.UNAVAILABLE && operation === "next")) this.end();
    return answer;
  }

  /** Asks for tasks until the worker stops; an answer that comes after that may still bring some. */
  private async takeTasks(): Promise<void> {
    const { worker } = this, { slots, waitMs } = worker.options, pause = new Pause();
    while (!this.isOver && worker.stopBy === undefined) {
      if (worker.busy >= slots) {
        await worker.change();
        continue;
      }
      const answer = await this.call("next", { max: slots - worker.busy, waitMs }, waitMs + NEXT_MORE_MS);
      if (answer.status !== Status.OK) {
        if (!this.isOver) await sleep(pause.next());
      } else if (!worker.leaseIsOver()) {
        pause.reset();
        for (const message of listed(answer.tasks)) if (message?.claim) worker.begin(new Held(message, worker.payloadMax, worker.detailsMax));
      }
    }
  }

  /** Has an outcome stored, if there is one; if the session ends before, the next one does that. */
  deliver(held: Held): void {
    if (held.outcome && this.subject !== "") void this.complete(held);
  }

  private async complete(held: Held): Promise<void> {
    const { worker } = this, pause = new Pause();
    while (!this.isOver && worker.hand.get(held.claim) === held) {
      const again = held.sent, what = `the outcome of ${held.task.activity} of ${held.task.instance}`;
      held.sent = true;
      const answer = await this.call("complete", { outcomes: [held.outcome] }, STORE_MS);
      const result = answer.status === Status.INVALID ? answer : listed(answer.results)[0], status = result?.status ?? Status.OK;
      if (status === Status.INVALID) {
        const text = `the gateway cannot take ${what}: ${result?.text ?? ""}`;
        worker.options.warn(`${text}; it is a failed try`);
        if (!held.refuse(text)) worker.fatal(new TholeError(status, text));
        continue;
      }
      if (answer.status !== Status.OK || !result || status === Status.UNAVAILABLE || status === Status.TIMEOUT) {
        await sleep(pause.next());
        continue;
      }
      if (status === Status.FENCED && again) worker.options.warn(`${what} was sent before, and may be stored: its claim is gone`);
      else if (status !== Status.OK) worker.options.warn(`${what} is refused: ${status} ${result.text ?? ""}`);
      worker.forget(held);
    }
  }

  private async renewals(): Promise<void> {
    const { worker } = this, pause = new Pause(), room = (worker.nc.info?.max_payload ?? 1 << 20) * 3 / 4; // base64: details have two thirds
    for (let waitMs = this.renewMs; ;) {
      await sleep(waitMs);
      if (this.isOver) return;
      if (linkOf(worker.nc).cuts !== this.cuts) return this.end(); // answers may be lost
      const sentAt = performance.now();
      let left = room;
      const running = [...worker.hand.values()].map((held) => {
        const one = held.running(left);
        left -= one.message.details?.length ?? 0;
        return one;
      });
      const answer = await this.call("renew", { running: running.map(({ message }) => message) }, worker.patienceMs);
      if (answer.status === Status.OK) {
        pause.reset();
        waitMs = sentAt + this.renewMs - performance.now();
        for (const { sent } of running) sent();
        worker.renewed(sentAt, answer);
      } else {
        waitMs = Math.min(pause.next(), this.renewMs);
      }
    }
  }

  private noticeArrived(notice: Notice | null): void {
    if (this.isOver) return;
    this.worker.notify(notice);
    setTimeout(() => { if (!this.isOver) this.worker.notify(notice); }, 100); // it may overtake its task by a moment
  }

  /** Ends the session when the gateway holds nothing of it any more. */
  private async close(): Promise<void> {
    const pause = new Pause();
    while (!this.isOver) {
      const limitMs = Math.max(0, Math.ceil((this.worker.stopBy ?? 0) - performance.now()));
      const answer = await this.call("close", { limitMs }, limitMs + CLOSE_MORE_MS);
      if (answer.status === Status.OK) {
        this.isClosed = true;
        this.end();
      } else await sleep(pause.next());
    }
  }
}

function parsed(data: Uint8Array): Notice | null {
  try {
    return JSON.parse(Buffer.from(data).toString()) as Notice;
  } catch {
    return null;
  }
}
