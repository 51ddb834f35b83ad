// Times are shown in the viewer's zone, and in UTC when pointed at.
import { h } from './dom.js';

let offset = 0; // of the server's clock to this one's, in milliseconds

export function setServerClock(nowMs) {
  offset = nowMs - Date.now();
}

export function now() {
  return Date.now() + offset;
}

/** Milliseconds of what the server sends: a number, or a time as RFC 3339 has it. null: there is none. */
export function toMs(value) {
  if (value === null || value === undefined || value === '') return null;
  const ms = typeof value === 'number' ? value : Date.parse(value);
  return Number.isFinite(ms) ? ms : null;
}

const two = (n) => String(n).padStart(2, '0');

function clockText(date, fraction) {
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return fraction ? `${text}.${String(date.getMilliseconds()).padStart(3, '0')}` : text;
}

/** The local time; without the date when that is today's. */
export function localText(ms, { fraction = false, always = false } = {}) {
  const date = new Date(ms);
  const today = new Date(now());
  const same = date.toDateString() === today.toDateString();
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return same && !always ? clockText(date, fraction) : `${day} ${clockText(date, fraction)}`;
}

/** 950 ms, 1.23 s, 2 min 3 s, 3 h 4 min, 2 d 3 h. */
export function spanText(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–';
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1000) return `${whole} ms`;
  if (whole < 10000) return `${(whole / 1000).toFixed(2)} s`;
  if (whole < 60000) return `${(whole / 1000).toFixed(1)} s`;
  const s = Math.floor(whole / 1000);
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function agoText(ms) {
  const diff = now() - ms;
  if (diff < -1500) return `in ${spanText(-diff)}`;
  return diff < 1500 ? 'just now' : `${coarse(diff)} ago`;
}

function coarse(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

function utcText(ms) {
  return `${new Date(ms).toISOString()} (UTC)`;
}

/** A <time>: local text, UTC as its title. */
export function timeNode(value, options = {}) {
  const ms = toMs(value);
  if (ms === null) return h('span', { class: 'none' }, '–');
  const text = options.ago ? agoText(ms) : localText(ms, options);
  const title = options.ago ? `${localText(ms, { always: true })} here, ${utcText(ms)}` : utcText(ms);
  return h('time', { datetime: new Date(ms).toISOString(), title, 'data-ago': options.ago ? ms : null }, text);
}

/** The "3 s ago" of a page go on. */
export function tickAges(root) {
  for (const node of root.querySelectorAll('time[data-ago]')) {
    const text = agoText(Number(node.dataset.ago));
    if (node.textContent !== text) node.textContent = text;
  }
}
