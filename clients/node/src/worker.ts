import type { NatsConnection } from "@nats-io/transport-node";
import { ActivityFailure, Cancelled, name, TholeError } from "./errors.js";
import { controller, Link, Pause, sleep, until } from "./link.js";
import { failure, Session, success, type Owner } from "./session.js";
import type { Activity, Held } from "./task.js";
import { Status, type Notice, type Outcome, type SessionOpened } from "./wire.js";

const OPEN_MS = 5_000;

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
export class Worker implements Owner {
  private readonly options: Required<WorkerOptions>;
  private readonly link: Link;
  private readonly sessions = new Set<Session>();
  private readonly stopping = controller();
  private readonly waiting = new Set<() => void>();
  private readonly openPause = new Pause();
  private error: Error | undefined;
  private finished: Promise<void> | undefined;
  private limitMs: number;
  private busy = 0; // slots taken: until an outcome is answered, and by a handler whose task is lost until it ends

  constructor(nc: NatsConnection, options: WorkerOptions) {
    this.options = {
      namespace: "default", name: "node-worker", slots: 10, waitMs: 10_000, stopLimitMs: 30_000,
      warn: (text) => console.warn(`thole: ${text}`), ...options,
    };
    for (const what of ["namespace", "queue", "name"] as const) name(what, this.options[what]);
    for (const activity of Object.keys(this.options.activities)) name("activity", activity);
    this.limitMs = this.options.stopLimitMs;
    this.link = Link.of(nc);
  }

  /** Works until `stop`, or `signal` aborts, which stops gracefully; rejects when the gateway refuses this worker. */
  run(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) this.stopping.abort();
    signal?.addEventListener("abort", () => this.stopping.abort(), { once: true });
    return (this.finished ??= this.work());
  }

  /** Takes no new tasks, lets running ones end for up to the limit, and then tells them to. Ends `run`. */
  stop(limitMs = this.options.stopLimitMs): Promise<void> {
    this.limitMs = limitMs;
    this.stopping.abort();
    return this.finished ?? Promise.resolve();
  }

  private async work(): Promise<void> {
    void this.link.nc.closed().then((err) => this.fatal(err ?? new Error("the NATS connection is closed")));
    while (!this.stopping.signal.aborted) {
      const session = await this.open();
      if (session) await this.feed(session);
      for (const old of this.sessions) if (old.isOver) this.sessions.delete(old);
      await sleep(this.openPause.next() - 200, this.stopping.signal); // at once, unless sessions end before they were of use
    }
    if (!this.error) await Promise.all([...this.sessions].map((session) => session.close(this.limitMs)));
    if (this.error) throw this.error;
  }

  private async open(): Promise<Session | undefined> {
    const { namespace, queue, name, slots, activities } = this.options;
    while (!this.stopping.signal.aborted) {
      const inbox = this.link.inbox();
      let session: Session | undefined;
      const subscription = this.link.nc.subscribe(inbox, {
        callback: (err, message) => { if (!err) session?.notice(parsed(message.data)); },
      });
      const sentAt = performance.now();
      const answer = await this.link.request<SessionOpened>(`thole.${namespace}.gateway.open.${queue}`,
        { worker: name, slots, activities: Object.keys(activities), inbox }, OPEN_MS);
      if (answer.status === Status.OK && answer.subject) {
        session = new Session(this, this.link, answer, subscription, sentAt);
        this.sessions.add(session);
        return session;
      }
      subscription.unsubscribe();
      if (answer.status === Status.INVALID || answer.status === Status.DENIED) {
        this.fatal(new TholeError(answer.status, `open: ${answer.text}`));
        return undefined;
      }
      await sleep(this.openPause.next(), this.stopping.signal);
    }
    return undefined;
  }

  /** Asks for tasks until the session takes none any more. */
  private async feed(session: Session): Promise<void> {
    const pause = new Pause();
    while (!this.stopping.signal.aborted && !session.isOver && !session.retired) {
      const free = this.options.slots - this.busy;
      if (free <= 0) {
        await this.change();
        continue;
      }
      let status: number | undefined; // stays undefined when the worker stops: what still comes is taken all the same
      await until((done) => {
        session.next(free, this.options.waitMs).then((got) => { status = got; done(); });
        return () => {};
      }, Infinity, this.stopping.signal);
      if (status === Status.OK) {
        pause.reset();
        this.openPause.reset();
      } else if (status === Status.UNAVAILABLE) {
        session.retire();
      } else if (status !== undefined && !session.isOver) {
        await sleep(pause.next(), this.stopping.signal);
      }
    }
  }

  // ---- told by sessions ----

  take(session: Session, held: Held): void {
    this.busy++;
    this.outcome(held)
      .then((outcome) => session.complete(held, outcome))
      .catch((err: Error) => this.fatal(err))
      .finally(() => { this.busy--; this.changed(); });
  }

  private async outcome(held: Held): Promise<Outcome> {
    const { task, claim } = held;
    const activity = Object.hasOwn(this.options.activities, task.activity) ? this.options.activities[task.activity] : undefined;
    if (!activity) return failure(claim, `this worker has no activity ${task.activity}`, "unknown_activity", false);
    await Promise.resolve(); // so that the other tasks of an answer are in hand before a handler runs
    try {
      return success(claim, await activity(task));
    } catch (err) {
      if (err instanceof ActivityFailure) return failure(claim, err.message, err.type, err.final);
      if (task.signal.aborted) return { claim, cancelled: true };
      if (err instanceof Cancelled) return failure(claim, `threw Cancelled, and was not: ${err.message}`, err.name, false);
      return err instanceof Error ? failure(claim, err.message, err.name, false) : failure(claim, String(err), "", false);
    }
  }

  changed(): void {
    for (const tell of [...this.waiting]) tell();
  }

  /** Waits until a slot may be free, a session over, or the worker stops. */
  private change(): Promise<void> {
    return until((done) => { this.waiting.add(done); return () => this.waiting.delete(done); }, Infinity, this.stopping.signal);
  }

  fatal(err: Error): void {
    this.error ??= err;
    for (const session of this.sessions) session.end("shutdown", err.message);
    this.stopping.abort();
  }

  warn(text: string): void { this.options.warn(text); }
}

function parsed(data: Uint8Array): Notice {
  try {
    return JSON.parse(Buffer.from(data).toString()) as Notice;
  } catch {
    return { claim: "" };
  }
}
