import { Status } from "./gateway.js";

/** Thrown by an activity: the try has failed. Any other error that it throws is a failure of the type of its name. */
export class ActivityFailure extends Error {
  override readonly name = "ActivityFailure";
  /** [A-Za-z0-9_.-]{0,64}: orchestrations decide by it. */
  readonly type: string;
  /** No other try. */
  readonly final: boolean;
  constructor(text: string, options: { type?: string; final?: boolean } = {}) {
    super(text);
    this.type = options.type ?? "";
    this.final = options.final ?? false;
  }
}

/** The `reason` of a task's AbortSignal. An activity that ends because of it throws it (or any other error). */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
  constructor(
    /** requested, select_loser, explicit, ended, timeout, terminated, cancelled, shutdown; lease_lost: another may run it now. */
    readonly kind: string,
    readonly reason: string,
    /** Time that the activity has to end. */
    readonly graceMs: number,
  ) {
    super(reason === "" ? kind : `${kind}: ${reason}`);
  }
}

/** A namespace, queue, worker, activity, orchestration, event or query; others do not get into a subject. */
export function name(what: string, value: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(value)) throw new TholeError(Status.INVALID, `${JSON.stringify(value)} is no ${what}: [A-Za-z0-9_-]{1,64}`);
  return value;
}

/** The gateway refused, or did not answer in time (status 9, UNAVAILABLE). TIMEOUT of `wait` has the state of the instance. */
export class TholeError extends Error {
  override readonly name = "TholeError";
  readonly state: string;
  /** Why the instance does not go on, if that is known, and what would help. */
  readonly reason: string;
  readonly nextStep: string;
  constructor(readonly status: number, text: string, { state = "", reason = "", nextStep = "" } = {}) {
    super((text === "" ? `status ${status}` : text) + (nextStep === "" ? "" : `; try: ${nextStep}`));
    this.state = state;
    this.reason = reason;
    this.nextStep = nextStep;
  }
}
