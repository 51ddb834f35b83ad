export { Client, type CallOptions, type ClientOptions, type InstanceOutcome, type ListOptions, type StartOptions } from "./client.js";
export { ActivityFailure, Cancelled, TholeError } from "./errors.js";
export { jsonActivity, LATER, type Activity, type Task } from "./task.js";
export { Status, type Hindrance, type Instance } from "./gateway.js";
export { Worker, type WorkerOptions } from "./worker.js";
