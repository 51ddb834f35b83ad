import { errors, headers, type NatsConnection } from "@nats-io/transport-node";

// The messages of proto/gateway.proto in the JSON mapping, as far as a worker and a client read and write them.

/** Statuses that matter to a worker or a client; `TholeError.status` may be any other. */
export const Status = {
  OK: 0, INVALID: 2, LIMIT: 3, CANCELLED: 6, APP: 7, CONFLICT: 8, UNAVAILABLE: 9, NOT_FOUND: 10, TIMEOUT: 11, DENIED: 13, FENCED: 14,
} as const;

/** No status of a gateway: there was no answer in time, or none that can be read. */
export const NO_ANSWER = -1;

export interface TaskMessage {
  claim: string; activity?: string; instance?: string; execution?: string | number; activityId?: string | number; tryNumber?: number;
  attempt?: number; input?: string; key?: string; orchestration?: string; version?: number; details?: string;
  timeoutMs?: string | number; queue?: string; traceparent?: string; tracestate?: string; token?: string;
}
export interface RunningTask { claim: string; details?: string; heartbeat?: boolean }
export interface Notice { claim: string; kind?: string; reason?: string; graceMs?: number }
export interface Outcome { claim: string; output?: string; failure?: { text: string; type: string; final: boolean }; cancelled?: boolean; details?: string; heartbeat?: boolean; later?: boolean }

/** Any answer. */
export interface Answer {
  status: number; text: string;
  session?: string; subject?: string; leaseMs?: number; renewMs?: number; payloadMax?: string | number; detailsMax?: number; gateway?: string; gone?: string[];
  tasks?: TaskMessage[]; cancelled?: Notice[]; results?: { claim: string; status?: number; text?: string }[];
  instance?: string; state?: string; output?: string; errorType?: string; reason?: string; nextStep?: string; note?: string;
  info?: Partial<Instance>; hindrances?: Partial<Hindrance>[]; instances?: Partial<Instance>[];
}

/** What is known of an instance. */
export interface Instance {
  instance: string; orchestration: string;
  /** 0: not chosen yet. */
  version: number;
  execution: number;
  /** pending, running, waiting, stuck, paused, completed, failed, cancelled, terminated. */
  state: string;
  /** Why it does not go on: no_code, divergence, paused, …; `detail` is for people, of a failure the head of its text. */
  reason: string; detail: string;
  customStatus: string; parent: string; createdMs: number; updatedMs: number; turns: number; openActivities: number; openTimers: number;
  /** Of `describe`: what keeps it from going on; none: it goes on, waits for time or an event, or has ended. */
  hindrances: Hindrance[];
}

/** What keeps an instance from going on, until somebody does something. `kind`: a reason; or no_engine, not_taken, no_worker,
 *  unknown_activity, quarantined, child. */
export interface Hindrance { kind: string; text: string; nextStep: string }

const NUMBERS = ["version", "execution", "createdMs", "updatedMs", "turns", "openActivities", "openTimers"] as const;
const TEXTS = ["instance", "orchestration", "state", "reason", "detail", "customStatus", "parent"] as const;

export function instanceOf(info: Partial<Instance> = {}, hindrances: Partial<Hindrance>[] = []): Instance {
  return Object.fromEntries([...TEXTS.map((key) => [key, info[key] ?? ""]), ...NUMBERS.map((key) => [key, Number(info[key] ?? 0)]),
    ["hindrances", hindrances.map(({ kind = "", text = "", nextStep = "" }) => ({ kind, text, nextStep }))]]) as Instance;
}

export const encode = (bytes: Uint8Array | string | undefined): string => Buffer.from(bytes ?? "").toString("base64");
export const decode = (text: string | undefined): Buffer => Buffer.from(text ?? "", "base64");
export const listed = <T>(list: T[] | undefined): T[] => (Array.isArray(list) ? list : []);
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What is known of a connection: whether it is cut, and how often it was. */
interface Link { isCut: boolean; cuts: number }
const links = new WeakMap<NatsConnection, Link>();

export function linkOf(nc: NatsConnection): Link {
  let link = links.get(nc);
  if (!link) {
    links.set(nc, link = { isCut: false, cuts: 0 });
    void watch(nc, link);
  }
  return link;
}

async function watch(nc: NatsConnection, link: Link): Promise<void> {
  for await (const { type } of nc.status()) {
    if (type === "disconnect") link.cuts++;
    if (type === "disconnect" || type === "reconnect") link.isCut = type === "disconnect";
  }
}

/** One request. Never throws. Nothing is sent while the connection is cut: it would arrive when nobody waits for its answer any more. */
export async function call(nc: NatsConnection, subject: string, body: object, timeout: number, sender = {}): Promise<Answer> {
  try {
    if (linkOf(nc).isCut) throw new Error("not connected to NATS");
    const h = headers();
    for (const [name, value] of Object.entries<string>({ "Content-Type": "application/json", ...sender })) h.set(name, value);
    const message = await nc.request(subject, JSON.stringify(body), { timeout: Math.max(1, Math.ceil(timeout)), headers: h });
    const answer = JSON.parse(message.string()) as Partial<Answer> | null;
    const status = answer?.status ?? Status.OK;
    if (typeof answer !== "object" || answer === null || Array.isArray(answer) || !Number.isInteger(status))
      throw new Error("the answer is none of a gateway");
    return { ...answer, status, text: String(answer.text ?? "") };
  } catch (err) {
    const unsendable = err instanceof errors.InvalidArgumentError; // larger than max_payload
    return { status: unsendable ? Status.INVALID : NO_ANSWER, text: String((err as Error).message) };
  }
}

/** Pauses between tries: 200 ms, doubled up to 5 s, and up to a quarter more so that workers do not ask in step. */
export class Pause {
  private ms = 0;
  reset(): void { this.ms = 0; }
  next(): number {
    this.ms = Math.min(Math.max(this.ms * 2, 200), 5000);
    return this.ms * (1 + Math.random() / 4);
  }
}
