// What a history says, as spans of time: one of each activity with its tries, each timer, awaited event and child.
import { toMs } from './time.js';

const SCHEDULES = {
  ActivityScheduled: 'activity',
  TimerCreated: 'timer',
  EventAwaited: 'event',
  ChildScheduled: 'child',
};
const ENDS = {
  ActivityCompleted: 'completed',
  ActivityFailed: 'failed',
  ActivityCancelled: 'cancelled',
  TimerFired: 'completed',
  TimerCancelled: 'cancelled',
  EventAwaitCancelled: 'cancelled',
  ChildCompleted: 'completed',
  ChildFailed: 'failed',
  ChildCancelled: 'cancelled',
};
const MARKS = {
  CancelRequested: 'cancel',
  TerminateRequested: 'cancel',
  CustomStatusSet: 'note',
  EventReceived: 'event',
  ContinuedAsNew: 'execution',
};
const INSTANCE_ENDS = {
  Completed: 'completed',
  Failed: 'failed',
  Cancelled: 'cancelled',
  Terminated: 'cancelled',
};

export const keyOf = (event) => `${event.execution}.${event.id}`;

export class History {
  constructor() {
    this.events = [];
    this.spans = [];
    this.marks = [];
    this.pauses = []; // {from, to}
    this.byKey = new Map(); // events
    this.spanOf = new Map(); // of the event that asked for it
    this.waiting = new Map(); // execution.name -> spans that await this event
    this.early = new Map(); // execution.name -> events that no one awaited yet
    this.executions = [];
    this.first = null;
    this.last = null;
    this.sequence = 0;
    this.cancelled = null; // the last mark of a cancellation
  }

  /** False: it was there already. */
  add(event) {
    const key = keyOf(event);
    if (this.byKey.has(key)) return false;
    const at = toMs(event.time);
    const kept = { ...event, key, at };
    this.byKey.set(key, kept);
    this.events.push(kept);
    this.sequence = Math.max(this.sequence, event.sequence ?? 0);
    this.first = this.first === null ? at : Math.min(this.first, at);
    this.last = Math.max(this.last ?? at, at);
    if (this.executions[this.executions.length - 1] !== event.execution) this.executions.push(event.execution);
    this.place(kept);
    return true;
  }

  place(event) {
    if (event.kind in SCHEDULES) this.open(event);
    if (event.kind in ENDS) this.end(event);
    if (event.kind in MARKS) this.mark(event);
    if (event.kind in INSTANCE_ENDS || event.kind === 'ContinuedAsNew') this.close(event);
    if (event.kind === 'ActivityTryFailed') this.tryFailed(event);
    if (event.kind === 'ActivityTryStarted') this.tryStarted(event);
    if (event.kind === 'ActivityQuarantined') this.quarantined(event);
    if (event.kind === 'EventReceived') this.received(event);
    if (event.kind === 'Paused') this.pauses.push({ from: event.at, to: null, reason: event.data });
    if (event.kind === 'Resumed' && this.pauses.length > 0) this.pauses[this.pauses.length - 1].to = event.at;
  }

  open(event) {
    const span = {
      kind: SCHEDULES[event.kind],
      key: event.key,
      execution: event.execution,
      id: event.id,
      name: event.name ?? '',
      queue: event.queue ?? '',
      child: event.other ?? '',
      from: event.at,
      due: toMs(event.due),
      to: null,
      outcome: 'open',
      events: [event],
      tries: [],
    };
    if (span.kind === 'activity') span.tries.push({ number: 1, from: event.at, to: null, outcome: 'open' });
    this.spans.push(span);
    this.spanOf.set(event.key, span);
    if (span.kind === 'event') this.await(span);
  }

  spanFor(event) {
    const span = this.spanOf.get(`${event.execution}.${event.ref}`);
    if (span) {
      span.events.push(event);
      this.spanOf.set(event.key, span);
    }
    return span;
  }

  end(event) {
    const span = this.spanFor(event);
    if (!span) return;
    span.to = event.at;
    span.outcome = ENDS[event.kind];
    span.cause = event.cause ?? event.error_type ?? '';
    span.reason = event.data ?? '';
    const last = span.tries[span.tries.length - 1];
    if (last && last.to === null) finishTry(last, event, span.outcome);
    if (span.outcome === 'cancelled') this.noteLatency(span, event);
    if (span.kind === 'event') this.unawait(span);
  }

  /** From what made it lose, or from the request, to the end of what was running. */
  noteLatency(span, event) {
    const ended = toMs(event.run_ended);
    const cause = event.cause === 'requested' || event.cause === 'terminated' ? this.cancelled : null;
    const from = cause ? cause.at : event.at;
    if (ended !== null) span.latency = ended - from;
    if (cause) {
      cause.spans.push(span);
      span.cancelledBy = cause.event.key;
    }
  }

  tryFailed(event) {
    const span = this.spanFor(event);
    const last = span?.tries[span.tries.length - 1];
    if (!last) return;
    finishTry(last, event, 'failed');
    span.retryDue = toMs(event.due);
  }

  tryStarted(event) {
    const span = this.spanFor(event);
    if (!span) return;
    const last = span.tries[span.tries.length - 1];
    if (last && last.to === null) finishTry(last, event, 'failed');
    if (event.queue) span.queue = event.queue;
    span.tries.push({ number: event.try ?? span.tries.length + 1, from: event.at, to: null, outcome: 'open' });
    span.retryDue = null;
  }

  quarantined(event) {
    const span = this.spanFor(event);
    const last = span?.tries[span.tries.length - 1];
    if (last) finishTry(last, event, 'quarantined');
  }

  /** An event goes to the first that awaits its name, also when it came before. */
  received(event) {
    const key = `${event.execution}.${event.name}`;
    const spans = this.waiting.get(key);
    if (!spans?.length) {
      this.early.set(key, [...(this.early.get(key) ?? []), event]);
      return;
    }
    this.arrive(spans.shift(), event);
  }

  await(span) {
    const key = `${span.execution}.${span.name}`;
    const early = this.early.get(key);
    if (early?.length) this.arrive(span, early.shift());
    else this.waiting.set(key, [...(this.waiting.get(key) ?? []), span]);
  }

  unawait(span) {
    const key = `${span.execution}.${span.name}`;
    this.waiting.set(key, (this.waiting.get(key) ?? []).filter((other) => other !== span));
  }

  arrive(span, event) {
    span.to = Math.max(span.from, event.at);
    span.outcome = 'completed';
    span.events.push(event);
    this.spanOf.set(event.key, span);
  }

  mark(event) {
    const mark = { kind: MARKS[event.kind], at: event.at, event, spans: [] };
    this.marks.push(mark);
    if (mark.kind === 'cancel') this.cancelled = mark;
  }

  /** With its execution everything ends that is still open in it. */
  close(event) {
    for (let i = this.spans.length - 1; i >= 0 && this.spans[i].execution === event.execution; i--) {
      const span = this.spans[i];
      if (span.to !== null) continue;
      span.to = event.at;
      span.outcome = 'left';
      for (const one of span.tries) if (one.to === null) finishTry(one, event, 'left');
    }
    if (event.kind !== 'ContinuedAsNew') this.ended = { at: event.at, outcome: INSTANCE_ENDS[event.kind], event };
  }
}

/** A result may say where and when it was worked on; else a try lasts from event to event. */
function finishTry(one, event, outcome) {
  one.to = event.at;
  one.outcome = outcome;
  one.worker = event.worker ?? '';
  one.host = event.host ?? '';
  one.started = toMs(event.run_started);
  one.ended = toMs(event.run_ended);
  one.text = outcome === 'completed' ? '' : (event.data ?? '');
}
