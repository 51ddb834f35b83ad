import type { Subscription } from "@nats-io/transport-node";
import { TholeError } from "./errors.js";
import { controller, Pause, sleep, type Link } from "./link.js";
import { Held } from "./task.js";
import {
  encode, NO_RESPONDERS, Status, type Answer, type Notice, type Outcome, type RunningTask, type SessionOpened, type Tasks,
  type TasksCompleted, type TasksRenewed,
} from "./wire.js";

const COMPLETE_MS = 10_000;
const CLOSE_MORE_MS = 10_000;
const NEXT_MORE_MS = 5_000;
const DONE_MAX = 10_000; // claims that are remembered so that a task which comes again is known
const TEXT_MAX = 4096;

/** What a session tells its worker. */
export interface Owner {
  take(session: Session, held: Held): void; // runs it
  changed(): void;                          // the hand got emptier, or the session is over
  fatal(err: Error): void;
  warn(text: string): void;
}

/** One session with a gateway: renews what is in hand until it is closed, lost, or forgotten by the gateway. */
export class Session {
  retired = false; // takes no new tasks
  private readonly hand = new Map<string, Held>();
  private readonly done = new Set<string>();
  private readonly ended = controller();
  private readonly renewPause = new Pause();
  private renewals = 0;
  private renewedAt: number;
  private renewTimer: NodeJS.Timeout | undefined;
  private leaseTimer: NodeJS.Timeout | undefined;
  private unknown = false; // the gateway's last answer was that it does not know the session
  private closing: Promise<void> | undefined;

  /** @param sentAt when the open was sent: the lease counts from then. */
  constructor(private readonly owner: Owner, private readonly link: Link, private readonly opened: SessionOpened,
      private readonly inbox: Subscription, sentAt: number) {
    this.renewedAt = sentAt;
    this.renewTimer = setTimeout(() => this.renew(), opened.renewMs);
    this.watchLease();
  }

  get isOver(): boolean { return this.ended.signal.aborted; }
  private get payloadMax(): number { return Number(this.opened.payloadMax ?? 0) || Infinity; }

  // ---- requests ----

  private async request<T extends Answer>(operation: string, body: object, timeoutMs: number, signal: AbortSignal): Promise<T> {
    this.leaseIsOver();
    const answer = await this.link.request<T>(`${this.opened.subject}.${operation}`, body, timeoutMs, signal);
    if (this.isOver) return answer;
    if (answer.status === Status.OK) this.unknown = false;
    else if (answer.status === Status.NOT_FOUND || answer.status === NO_RESPONDERS) {
      this.unknown = true;
      this.endIfForgotten();
    } else if (answer.status === Status.INVALID || answer.status === Status.DENIED) {
      this.owner.fatal(new TholeError(answer.status, `${operation}: ${answer.text}`));
    }
    return answer;
  }

  /** Asks for tasks and takes them. Returns the status. */
  async next(max: number, waitMs: number): Promise<number> {
    const answer = await this.request<Tasks>("next", { max, waitMs }, waitMs + NEXT_MORE_MS, this.ended.signal);
    if (answer.status === Status.OK && !this.isOver)
      for (const message of listed(answer.tasks))
        if (message?.claim && !this.hand.has(message.claim) && !this.done.has(message.claim)) {
          const held = new Held(message, Math.min(this.payloadMax, Math.floor(this.link.maxPayload / 2)));
          this.hand.set(held.claim, held);
          this.owner.take(this, held);
        }
    return answer.status;
  }

  // ---- lease ----

  private renew(): void {
    const number = ++this.renewals;
    clearTimeout(this.renewTimer);
    this.renewTimer = setTimeout(() => this.renew(), this.opened.renewMs);
    if (!this.link.isConnected || (this.closing && this.hand.size === 0)) return;
    const sentAt = performance.now();
    const running: RunningTask[] = [];
    const beats: (() => void)[] = [];
    let room = this.link.maxPayload / 2 + this.link.maxPayload / 4; // base64: details of half of it have two thirds
    for (const held of this.hand.values()) {
      const { message, sent } = held.running(room);
      room -= message.details?.length ?? 0;
      running.push(message);
      beats.push(sent);
    }
    // Others go out before this one is answered or given up: a slow answer counts, a lost one costs no lease.
    this.request<TasksRenewed>("renew", running.length > 0 ? { running } : {}, this.opened.leaseMs, this.ended.signal).then((answer) => {
      if (this.isOver) return;
      if (answer.status === Status.OK) this.renewed(answer, sentAt, beats);
      else if (number === this.renewals) this.renewSoon();
    });
  }

  private renewed(answer: TasksRenewed, sentAt: number, beats: (() => void)[]): void {
    this.renewPause.reset();
    this.renewedAt = Math.max(this.renewedAt, sentAt);
    this.watchLease();
    for (const sent of beats) sent();
    for (const notice of listed(answer.cancelled)) this.notice(notice);
    for (const claim of listed(answer.gone)) {
      const held = this.hand.get(claim);
      held?.lose("lease_lost", "the claim is gone");
      if (held) this.drop(held);
    }
  }

  private renewSoon(): void {
    const ms = Math.min(this.renewPause.next(), Math.max(this.opened.renewMs, 200));
    clearTimeout(this.renewTimer);
    this.renewTimer = setTimeout(() => this.renew(), ms);
  }

  private watchLease(): void {
    clearTimeout(this.leaseTimer);
    this.leaseTimer = setTimeout(() => this.leaseIsOver(), this.renewedAt + this.opened.leaseMs - performance.now());
  }

  private leaseIsOver(): void {
    if (this.isOver || performance.now() < this.renewedAt + this.opened.leaseMs) return;
    this.owner.warn(`no renewal was answered for ${this.opened.leaseMs} ms: ${this.hand.size} tasks are lost`);
    this.end("lease_lost", "no renewal was answered for a lease");
  }

  notice(notice: Notice): void {
    this.hand.get(notice?.claim)?.cancel(notice.kind ?? "", notice.reason ?? "", notice.graceMs ?? 0);
  }

  // ---- the end of a task ----

  /** Sends an outcome until it is answered, or the task is lost. */
  async complete(held: Held, outcome: Outcome): Promise<void> {
    const sent = this.fitting(outcome);
    const pause = new Pause();
    while (!held.isLost) {
      const answer = await this.request<TasksCompleted>("complete", { outcomes: [sent] }, COMPLETE_MS, held.lost);
      if (held.isLost) return;
      const result = listed(answer.results)[0];
      if (answer.status === Status.OK && result) {
        const status = result.status ?? Status.OK;
        if (status !== Status.UNAVAILABLE && status !== Status.TIMEOUT) {
          if (status !== Status.OK && status !== Status.FENCED) this.owner.warn(`an outcome was refused: ${status} ${result.text ?? ""}`);
          return this.drop(held);
        }
      } else if (answer.status === Status.FENCED) {
        return this.drop(held);
      }
      await sleep(pause.next(), held.lost);
    }
  }

  private fitting(outcome: Outcome): Outcome {
    const text = outcome.output ?? "";
    const bytes = Buffer.byteLength(text, "base64");
    const max = Math.min(this.payloadMax, Math.floor(((this.link.maxPayload - 1024) * 3) / 4));
    return bytes > max ? failure(outcome.claim, `the output has ${bytes} bytes; the limit is ${max}`, "too_large", true) : outcome;
  }

  private drop(held: Held): void {
    if (!this.hand.delete(held.claim)) return;
    this.done.add(held.claim);
    if (this.done.size > DONE_MAX) this.done.delete(this.done.values().next().value as string);
    this.endIfForgotten();
    this.owner.changed();
    if (this.retired && this.hand.size === 0) void this.close(0);
  }

  // ---- the end of the session ----

  /** Takes no new tasks, and closes when nothing is in hand. */
  retire(): void {
    this.retired = true;
    if (this.hand.size === 0) void this.close(0);
  }

  /** Closes it: what runs after the limit is told to end. Returns when nothing is held. */
  close(limitMs: number): Promise<void> {
    return (this.closing ??= this.closeNow(limitMs));
  }

  private async closeNow(limitMs: number): Promise<void> {
    this.retired = true;
    const deadline = performance.now() + limitMs;
    const pause = new Pause();
    const givenUp = (): boolean => performance.now() >= deadline + CLOSE_MORE_MS + (this.hand.size > 0 ? this.opened.graceMs : 0);
    while (!this.isOver && !givenUp()) {
      const leftMs = Math.max(0, Math.ceil(deadline - performance.now()));
      const answer = await this.request("close", { limitMs: leftMs }, leftMs + CLOSE_MORE_MS, this.ended.signal);
      if (answer.status === Status.OK) break;
      await sleep(pause.next(), this.ended.signal);
    }
    this.end("shutdown", "the session was closed");
  }

  private endIfForgotten(): void {
    if (this.unknown && this.hand.size === 0) this.end("lease_lost", "the gateway does not know the session");
  }

  /** Sends nothing any more, whatever is still in hand. */
  end(kind: string, reason: string): void {
    if (this.isOver) return;
    this.ended.abort();
    clearTimeout(this.renewTimer);
    clearTimeout(this.leaseTimer);
    this.inbox.unsubscribe();
    for (const held of this.hand.values()) held.lose(kind, reason);
    this.hand.clear();
    this.owner.changed();
  }
}

const listed = <T>(list: T[] | undefined): T[] => (Array.isArray(list) ? list : []);

export function failure(claim: string, text: string, type: string, final: boolean): Outcome {
  const short = Buffer.from(text.slice(0, TEXT_MAX)).toString(); // and without lone surrogates, which are no UTF-8
  return { claim, failure: { text: short, type: type.replace(/[^A-Za-z0-9_.-]/g, "_").slice(0, 64), final } };
}

export function success(claim: string, output: Uint8Array | string | void): Outcome {
  return { claim, output: encode(output ?? "") };
}
