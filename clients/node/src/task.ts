import { setMaxListeners } from "node:events";
import { ActivityFailure, Cancelled } from "./errors.js";
import { decode, encode, type Outcome, type RunningTask, type TaskMessage } from "./gateway.js";

const TEXT_MAX = 4096;
export const DETAILS_MAX = 16 * 1024; // of a gateway that does not say
const REFUSED = "outcome_refused";

/** One try of an activity. */
export interface Task {
  readonly activity: string;
  readonly queue: string;
  readonly orchestration: string;
  readonly version: number;
  readonly instance: string;
  readonly execution: bigint;
  readonly activityId: bigint;
  readonly tryNumber: number;
  /** How often this try has been claimed. */
  readonly attempt: number;
  readonly input: Buffer;
  /** The same for every try and every run of this activity: pass it on to services that must not do it twice. */
  readonly key: string;
  /** Of the last heartbeat before this claim. */
  readonly details: Buffer;
  /** Until this try's deadline, when it came; 0: it has none. */
  readonly timeoutMs: number;
  /** W3C Trace Context of the start; empty: it had none. */
  readonly traceparent: string;
  readonly tracestate: string;
  /** For `Client.completeActivity`, when the activity has returned LATER; empty: it must not be completed later. */
  readonly token: string;
  /** Aborts when the task is to end; `signal.reason` is a `Cancelled`. */
  readonly signal: AbortSignal;
  /** Says that it goes on, and stores `details` with the next renewal. The newest one counts. */
  heartbeat(details?: Uint8Array | string): void;
}

/** What an activity does. Its result is the output; text is stored as UTF-8. */
export type Activity = (task: Task) => Promise<Output> | Output;
type Output = Uint8Array | string | void | typeof LATER;

/** Returned by an activity whose task is completed later, by who has its token. */
export const LATER = Symbol("completed later");

/** An activity of values. An input that is no JSON is a final failure of type bad_input. */
export function jsonActivity<In, Out>(activity: (value: In, task: Task) => Promise<Out> | Out): Activity {
  return async (task) => {
    let value: In;
    try {
      value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(task.input)) as In;
    } catch (err) {
      throw new ActivityFailure(`the input cannot be read: ${(err as Error).message}`, { type: "bad_input", final: true });
    }
    const output = await activity(value, task);
    return output === LATER ? LATER : JSON.stringify(output);
  };
}

/** A task in hand: from its arrival until its outcome is answered, or it is lost. */
export class Held {
  readonly claim: string;
  readonly task: Task;
  /** How it ended. */
  outcome: Outcome | undefined;
  /** It may be stored, although no answer came. */
  sent = false;
  private readonly abort = new AbortController();
  private beat: { details: string } | undefined;

  constructor(message: TaskMessage, private readonly payloadMax: number, private readonly detailsMax = DETAILS_MAX) {
    setMaxListeners(0, this.abort.signal);
    this.claim = message.claim;
    this.task = {
      activity: message.activity ?? "", queue: message.queue ?? "", orchestration: message.orchestration ?? "",
      version: message.version ?? 0, instance: message.instance ?? "", execution: BigInt(message.execution ?? 0),
      activityId: BigInt(message.activityId ?? 0), tryNumber: message.tryNumber ?? 0, attempt: message.attempt ?? 0,
      input: decode(message.input), key: message.key ?? "", details: decode(message.details),
      timeoutMs: Number(message.timeoutMs ?? 0), traceparent: message.traceparent ?? "", tracestate: message.tracestate ?? "",
      token: message.token ?? "",
      signal: this.abort.signal, heartbeat: (details) => this.heartbeat(details),
    };
  }

  /** Tells the activity to end; the first notice counts. */
  cancel(kind: string, reason: string, graceMs: number): void {
    if (!this.abort.signal.aborted) this.abort.abort(new Cancelled(kind, reason, graceMs));
  }

  private heartbeat(details: Uint8Array | string = ""): void {
    if (Buffer.byteLength(details) > this.detailsMax)
      throw new RangeError(`details of ${Buffer.byteLength(details)} bytes; the limit is ${this.detailsMax}`);
    this.beat = { details: encode(details) };
  }

  /** For a renewal, with the heartbeat if it has at most `room` bytes; `sent` is called when the renewal was answered. */
  running(room: number): { message: RunningTask; sent: () => void } {
    const beat = this.beat;
    if (beat === undefined || beat.details.length > room) return { message: { claim: this.claim }, sent: () => {} };
    const message = { claim: this.claim, heartbeat: true, ...(beat.details === "" ? {} : { details: beat.details }) };
    return { message, sent: () => { if (this.beat === beat) this.beat = undefined; } };
  }

  /** Runs the activity. After a notice each error but an ActivityFailure means that it ended because of it. */
  async run(activity: Activity | undefined): Promise<void> {
    await Promise.resolve(); // so that the other tasks of an answer are in hand before a handler runs
    const { claim, task } = this;
    try {
      if (!activity) throw new ActivityFailure(`this worker has no activity ${task.activity}`, { type: "unknown_activity" });
      const result = await activity(task);
      if (result === LATER) {
        if (task.token === "") throw new ActivityFailure("this task cannot be completed later: it has no token", { type: "no_token", final: true });
        this.outcome = { claim, later: true };
        return;
      }
      const output = Buffer.from(result ?? "");
      if (output.length > this.payloadMax)
        throw new ActivityFailure(`the output has ${output.length} bytes; the limit is ${this.payloadMax}`, { type: "too_large", final: true });
      this.outcome = { claim, output: encode(output) };
    } catch (err) {
      const failure = err instanceof ActivityFailure;
      if (task.signal.aborted && !failure) this.outcome = { claim, cancelled: true };
      else if (failure) this.outcome = failed(claim, err.message, err.type, err.final);
      else this.outcome = err instanceof Error ? failed(claim, err.message, err.name, false) : failed(claim, String(err), "", false);
      if (this.beat) Object.assign(this.outcome, this.running(Infinity).message); // that no answered renewal has had
    }
  }

  /** The gateway cannot take the outcome: the try has failed. False: it cannot take that either. */
  refuse(why: string): boolean {
    if (this.outcome?.failure?.type === REFUSED) return false;
    this.outcome = failed(this.claim, why, REFUSED, false);
    return true;
  }
}

function failed(claim: string, text: string, type: string, final: boolean): Outcome {
  // Without NULs and lone surrogates, which are no UTF-8.
  const short = Buffer.from(text.slice(0, TEXT_MAX).replaceAll("\0", "\ufffd")).toString() || "failed";
  return { claim, failure: { text: short, type: type.replace(/[^A-Za-z0-9_.-]/g, "_").slice(0, 64), final } };
}
