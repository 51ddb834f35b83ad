import { setMaxListeners } from "node:events";
import { createInbox, headers, NoRespondersError, type NatsConnection } from "@nats-io/transport-node";
import { NO_ANSWER, NO_RESPONDERS, Status, type Answer } from "./wire.js";

/** Requests over a connection. Nothing is sent while it is cut, and what was asked before a cut counts as not answered. */
export class Link {
  private connected = true;
  private readonly cut = new Set<() => void>();
  private readonly back = new Set<() => void>();
  private static readonly all = new WeakMap<NatsConnection, Link>();

  private constructor(readonly nc: NatsConnection) {
    void this.watch();
  }

  /** The one of a connection: it lives as long. */
  static of(nc: NatsConnection): Link {
    let link = Link.all.get(nc);
    if (!link) Link.all.set(nc, link = new Link(nc));
    return link;
  }

  /** The largest message that the NATS server takes. */
  get maxPayload(): number { return this.nc.info?.max_payload ?? 1 << 20; }
  get isConnected(): boolean { return this.connected; }

  /** A new subject that this connection may subscribe. */
  inbox(): string {
    return createInbox((this.nc as { options?: { inboxPrefix?: string } }).options?.inboxPrefix);
  }

  private async watch(): Promise<void> {
    for await (const status of this.nc.status()) {
      if (status.type === "disconnect") {
        this.connected = false;
        for (const tell of [...this.cut]) tell();
      } else if (status.type === "reconnect") {
        this.connected = true;
        for (const tell of [...this.back]) tell();
      }
    }
  }

  /** Asks once the connection is there. Never throws: without an answer the status is NO_ANSWER or NO_RESPONDERS. */
  async request<T extends Answer>(subject: string, body: object, timeoutMs: number, signal?: AbortSignal, sender = {}): Promise<T> {
    const deadline = performance.now() + timeoutMs;
    while (!this.connected && !signal?.aborted && performance.now() < deadline)
      await until((done) => { this.back.add(done); return () => this.back.delete(done); }, deadline - performance.now(), signal);
    const leftMs = Math.ceil(deadline - performance.now());
    let answer: Answer = { status: NO_ANSWER, text: this.connected ? "no answer" : "not connected to NATS" };
    if (!this.connected || leftMs <= 0 || signal?.aborted) return answer as T;
    await until((done) => {
      this.ask(subject, body, leftMs, sender).then((got) => { answer = got; done(); });
      this.cut.add(done);
      return () => this.cut.delete(done);
    }, leftMs, signal);
    return answer as T;
  }

  private async ask(subject: string, body: object, timeout: number, sender: Record<string, string>): Promise<Answer> {
    try {
      const h = headers();
      for (const [name, value] of Object.entries({ "Content-Type": "application/json", ...sender })) h.set(name, value);
      const message = await this.nc.request(subject, JSON.stringify(body), { timeout, headers: h });
      const answer = JSON.parse(message.string()) as Partial<Answer> | null;
      const status = answer?.status ?? Status.OK;
      if (typeof answer !== "object" || answer === null || Array.isArray(answer) || !Number.isInteger(status))
        throw new Error("the answer is none of a gateway");
      return { ...answer, status, text: String(answer.text ?? "") };
    } catch (err) {
      return { status: isNoResponders(err) ? NO_RESPONDERS : NO_ANSWER, text: String((err as Error).message) };
    }
  }
}

function isNoResponders(err: unknown): boolean {
  return err instanceof NoRespondersError || (err instanceof Error && err.cause instanceof NoRespondersError);
}

/** Waits for an event, a time, or an abort, whichever is first, and leaves no listener behind. */
export function until(listen: (done: () => void) => () => void, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    let forget: (() => void) | undefined;
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      forget?.();
      resolve();
    };
    const timer = setTimeout(done, Math.min(ms, 2 ** 31 - 1));
    signal?.addEventListener("abort", done);
    forget = listen(done);
  });
}

export const sleep = (ms: number, signal?: AbortSignal): Promise<void> => until(() => () => {}, ms, signal);

/** The signal of a new controller, which may have many listeners. */
export function controller(): AbortController {
  const made = new AbortController();
  setMaxListeners(0, made.signal);
  return made;
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
