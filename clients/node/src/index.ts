export { Client, type CallOptions, type ClientOptions, type InstanceOutcome } from "./client.js";
export { ActivityFailure, Cancelled, TholeError } from "./errors.js";
export type { Activity, Task } from "./task.js";
export { Status } from "./gateway.js";
export { Worker, type WorkerOptions } from "./worker.js";
