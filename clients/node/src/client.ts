import { randomUUID } from "node:crypto";
import { hostname, userInfo } from "node:os";
import type { NatsConnection } from "@nats-io/transport-node";
import { name, TholeError } from "./errors.js";
import { call, decode, encode, instanceOf, linkOf, listed, NO_ANSWER, Pause, sleep, Status, type Answer, type Instance } from "./gateway.js";

const ANSWER_MS = 5_000;
const WAIT_MS = 10_000;

export interface CallOptions {
  /** How long to try, all repetitions together; the client's if it is left out. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface ClientOptions {
  namespace?: string;
  /** For each call, all repetitions together: 30 s. */
  timeoutMs?: number;
  /** For a `wait` that says nothing else: 10 minutes. */
  waitLimitMs?: number;
  /** Who asks, at most 200 bytes of printable ASCII: recorded with what is asked for. Default: $THOLE_ACTOR, else USER@HOST. */
  actor?: string;
  /** Who asks, for a connection whose permissions give it that name: NATS vouches for it, and `actor` does not count. At most 200 bytes. */
  vouchedActor?: string;
  /** The program with which, at most 64 bytes: "thole for Node". */
  name?: string;
  /** Adds the W3C Trace Context of a request: `(carrier) => propagation.inject(context.active(), carrier)` of OpenTelemetry. */
  trace?: (carrier: Record<string, string>) => void;
}

export interface StartOptions extends CallOptions {
  instance?: string; input?: Uint8Array | string; version?: number; requestId?: string;
  /** NOT_FOUND, and nothing is started, when no engine knows the orchestration. */
  requireKnown?: boolean;
  /** Is delivered in any case, whether the instance is started now or was before: signal with start. CONFLICT then: that one has ended. */
  event?: string; eventData?: Uint8Array | string;
}

export interface ListOptions extends CallOptions {
  /** As in `Instance`; none: any. */
  states?: string[];
  orchestration?: string; idPrefix?: string; parent?: string; customStatus?: string; createdAfterMs?: number; createdBeforeMs?: number;
  /** At most 1000; 100 if it is left out. There may be fewer, although there are more. */
  limit?: number;
  /** The next page: the last one of the page before. */
  behind?: Pick<Instance, "instance" | "createdMs">;
}

export interface InstanceOutcome {
  state: "completed" | "failed" | "cancelled" | "terminated";
  status: number;
  output: Buffer;
  /** Failure text, or reason. */
  text: string;
  errorType: string;
}

/** Starts, signals, queries and awaits instances. What is refused is a `TholeError`. */
export class Client {
  private readonly prefix: string;
  private readonly timeoutMs: number;
  private readonly actor: string;

  constructor(private readonly nc: NatsConnection, private readonly options: ClientOptions = {}) {
    linkOf(nc);
    this.prefix = `thole.${name("namespace", options.namespace ?? "default")}.gateway.client.`;
    this.timeoutMs = options.timeoutMs ?? 30_000;
    this.actor = options.actor || process.env.THOLE_ACTOR || ownActor();
  }

  /** Who asks, as headers. */
  private sender(): Record<string, string> {
    const carrier: Record<string, string> = {};
    this.options.trace?.(carrier);
    const { traceparent = "", tracestate = "" } = carrier;
    const name = this.options.name || "thole for Node";
    const said = { "Thole-Actor": this.actor, "Thole-Client": name, traceparent, tracestate };
    for (const [header, value] of Object.entries(said))
      if (!/^[ -~]*$/.test(value) || this.actor.length > 200 || name.length > 64)
        throw new TholeError(Status.INVALID, `${header} ${JSON.stringify(value.slice(0, 80))} is no text of printable ASCII, or too long`);
    return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== ""));
  }

  /** The end of a subject that names who asks, encoded as ids are. */
  private by(): string {
    const actor = this.options.vouchedActor;
    if (!actor) return "";
    if (Buffer.byteLength(actor) > 200 || /[\0\p{Surrogate}]/u.test(actor))
      throw new TholeError(Status.INVALID, `the vouched actor ${JSON.stringify(actor.slice(0, 80))} is no UTF-8 without NUL, or longer than 200 bytes`);
    return ".by." + encodeURIComponent(actor).replace(/[.!*'()]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
  }

  /** Starts an instance, once, however often it is repeated. Returns its id: a random one if none is given. */
  async start(orchestration: string, options: StartOptions = {}): Promise<string> {
    const { instance, input, version, requestId = randomUUID(), requireKnown, event } = options;
    if (instance === "") throw new TholeError(Status.INVALID, "the instance's id is empty");
    const of = name("orchestration", orchestration), body = { instance, input: encode(input), version, requestId, requireKnown };
    const answer = event === undefined ? await this.call(`start.${of}`, body, options)
      : await this.call(`start_event.${of}~${name("event", event)}`, { ...body, eventData: encode(options.eventData) }, options);
    return answer.instance ?? instance ?? "";
  }

  /** A note when the instance's code does not run: why, and what would help; "" when it does. */
  async signal(instance: string, event: string, data?: Uint8Array | string, options: CallOptions & { requestId?: string } = {}): Promise<string> {
    const body = { instance, data: encode(data), requestId: options.requestId ?? randomUUID() };
    return (await this.call(`signal.${name("event", event)}`, body, options)).note ?? "";
  }

  /** A note, as of `signal`. */
  async cancel(instance: string, reason = "", options: CallOptions & { requestId?: string } = {}): Promise<string> {
    return (await this.call("cancel", { instance, reason, requestId: options.requestId ?? randomUUID() }, options)).note ?? "";
  }

  async terminate(instance: string, reason = "", options: CallOptions & { requestId?: string } = {}): Promise<void> {
    await this.call("terminate", { instance, reason, requestId: options.requestId ?? randomUUID() }, options);
  }

  async query(instance: string, query: string, input?: Uint8Array | string, options: CallOptions = {}): Promise<Buffer> {
    const answer = await this.call(`query.${name("query", query)}`, { instance, input: encode(input) }, options);
    return decode(answer.output);
  }

  /** How an instance stands, and what keeps it from going on. */
  async describe(instance: string, options: CallOptions = {}): Promise<Instance> {
    const answer = await this.call("describe", { instance }, options);
    return instanceOf(answer.info, listed(answer.hindrances));
  }

  /** Instances, newest first: one page. An empty one is the end. */
  async list({ behind, timeoutMs, signal, ...filter }: ListOptions = {}): Promise<Instance[]> {
    const body = { ...filter, behindInstance: behind?.instance, behindCreatedMs: behind?.createdMs };
    return listed((await this.call("list", body, { timeoutMs, signal })).instances).map((info) => instanceOf(info));
  }

  /** Completes a task whose activity has returned LATER, by its token. Too late, or again, it changes nothing. */
  async completeActivity(token: string, output?: Uint8Array | string, options: CallOptions = {}): Promise<void> {
    await this.call("complete_activity", { token, output: encode(output) }, options);
  }

  async failActivity(token: string, failure: { text: string; type?: string }, options: CallOptions = {}): Promise<void> {
    await this.call("complete_activity", { token, failure }, options);
  }

  /** Waits until the instance has ended. TholeError TIMEOUT: it has not; the error says how it stands, why, and what would help. */
  async wait(instance: string, options: CallOptions = {}): Promise<InstanceOutcome> {
    const limited = { ...options, timeoutMs: options.timeoutMs ?? this.options.waitLimitMs ?? 600_000 };
    const answer = await this.ask("wait", (leftMs) => ({ instance, waitMs: waitMs(leftMs), explain: leftMs <= WAIT_MS || undefined }), limited);
    const { state = "", status, text } = answer;
    if (!["completed", "failed", "cancelled", "terminated"].includes(state)) throw new TholeError(status, text, answer);
    return { state: state as InstanceOutcome["state"], status, text, output: decode(answer.output), errorType: answer.errorType ?? "" };
  }

  private async call(operation: string, body: object, options: CallOptions): Promise<Answer> {
    const answer = await this.ask(operation, () => body, options);
    if (answer.status !== Status.OK) throw new TholeError(answer.status, answer.text);
    return answer;
  }

  /** Rejects as soon as the signal aborts. */
  private ask(operation: string, body: (leftMs: number) => { waitMs?: number }, options: CallOptions): Promise<Answer> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const abort = (): void => reject(signal?.reason as Error);
      signal?.addEventListener("abort", abort);
      this.repeat(operation, body, options).then(resolve, reject).finally(() => signal?.removeEventListener("abort", abort));
    });
  }

  /** Repeats until there is an answer that counts, or no time. */
  private async repeat(operation: string, body: (leftMs: number) => { waitMs?: number }, options: CallOptions): Promise<Answer> {
    const deadline = performance.now() + (options.timeoutMs ?? this.timeoutMs);
    const pause = new Pause(), sender = this.sender(), subject = this.prefix + operation + this.by();
    let last: Answer = { status: NO_ANSWER, text: "no answer" };
    for (let leftMs = deadline - performance.now(); leftMs > 0 && !options.signal?.aborted; leftMs = deadline - performance.now()) {
      const message = body(leftMs);
      const timeoutMs = (message.waitMs ?? 0) + Math.min(leftMs, Math.max(leftMs / 2, 500), ANSWER_MS);
      const answer = await call(this.nc, subject, message, Math.min(timeoutMs, leftMs), sender);
      if (answer.status !== NO_ANSWER || last.status === NO_ANSWER) last = answer;
      if (answer.status === Status.TIMEOUT && message.waitMs !== undefined) pause.reset(); // it still runs
      else if (answer.status !== NO_ANSWER && answer.status !== Status.UNAVAILABLE) return answer;
      await sleep(Math.min(pause.next(), Math.max(0, deadline - performance.now())));
    }
    throw new TholeError(last.status > 0 ? last.status : Status.UNAVAILABLE, last.text, last);
  }
}

function ownActor(): string {
  let user = "";
  try { user = userInfo().username; } catch { /* the system does not know it */ }
  return `${user.slice(0, 100)}@${hostname().slice(0, 99)}`.replace(/[^ -~]/g, "?");
}

/** The answer to the last one comes before there is no time. */
const waitMs = (leftMs: number): number => Math.max(1, Math.floor(Math.min(WAIT_MS, leftMs - Math.min(leftMs / 10, 300))));
