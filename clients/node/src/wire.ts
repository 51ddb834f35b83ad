// The messages of proto/gateway.proto in the JSON mapping, as far as a worker and a client read and write them.

/** Statuses that matter to a worker or a client; `TholeError.status` may be any other. */
export const Status = {
  OK: 0, INVALID: 2, LIMIT: 3, CANCELLED: 6, APP: 7, CONFLICT: 8, UNAVAILABLE: 9, NOT_FOUND: 10, TIMEOUT: 11, DENIED: 13, FENCED: 14,
} as const;

/** Not statuses of the gateway: what became of a request that it did not answer. */
export const NO_ANSWER = -1;
export const NO_RESPONDERS = -2;

export interface Answer { status: number; text: string }

export interface SessionOpened extends Answer {
  subject: string; leaseMs: number; renewMs: number; graceMs: number; payloadMax?: string | number; gateway?: string;
}

export interface TaskMessage {
  claim: string; activity?: string; instance?: string; execution?: string | number; activityId?: string | number; tryNumber?: number;
  attempt?: number; input?: string; key?: string; orchestration?: string; version?: number; details?: string;
  timeoutMs?: string | number; queue?: string; traceparent?: string; tracestate?: string;
}
export interface Tasks extends Answer { tasks?: TaskMessage[] }

export interface RunningTask { claim: string; details?: string; heartbeat?: boolean }
export interface Notice { claim: string; kind?: string; reason?: string; graceMs?: number }
export interface TasksRenewed extends Answer { cancelled?: Notice[]; gone?: string[] }

export interface Outcome { claim: string; output?: string; failure?: { text: string; type: string; final: boolean }; cancelled?: boolean }
export interface TasksCompleted extends Answer { results?: { claim: string; status?: number; text?: string }[] }

export const encode = (bytes: Uint8Array | string | undefined): string =>
  Buffer.from(bytes ?? "").toString("base64");
export const decode = (text: string | undefined): Buffer => Buffer.from(text ?? "", "base64");
