// The statuses of instances, and the badges that show them.
import { h } from './dom.js';

export const STATUSES = [
  'Running',
  'Waiting',
  'Paused',
  'Stuck',
  'Completed',
  'Failed',
  'Cancelled',
  'Terminated',
];
const ENDED = new Set(['Completed', 'Failed', 'Cancelled', 'Terminated', 'ContinuedAsNew']);

export const MEANING = {
  Pending: 'its start is stored, and waits for its first turn',
  Running: 'runs, or waits for an activity, a timer, an event or a child',
  Waiting: 'the engine that has its partition lacks its orchestration; it continues when one has it',
  Paused: 'thole pause; it continues with thole resume',
  Stuck: 'its code and its history disagree, or its code crashes; see its reason',
  Completed: 'ended with an output',
  Failed: 'ended with an error',
  Cancelled: 'was cancelled, and its code has undone what it wished',
  Terminated: 'was ended without its code',
  ContinuedAsNew: 'ended this execution and goes on with the next',
};

export function hasEnded(status) {
  return ENDED.has(status);
}

export function badge(status) {
  const name = String(status);
  return h('span', { class: `badge s-${name.toLowerCase()}`, title: MEANING[name] }, name);
}
