// Payloads: text is text, JSON is indented, what is no text is shown as bytes. Everything can be copied.
import { getBytes } from './api.js';
import { h, fill, safe, number } from './dom.js';

const SHOWN_CHARS = 200000; // of one payload, until its reader asks for all
const HEX_BYTES = 4096;

/** {text} or {bytes}, cut or not, of a member and its _base64. */
export function payloadOf(object, key) {
  const bytes = object[`${key}_bytes`];
  if (typeof object[`${key}_base64`] === 'string') {
    const raw = fromBase64(object[`${key}_base64`]);
    return { bytes: raw, length: bytes ?? raw.length, cut: bytes !== undefined && bytes > raw.length };
  }
  const text = object[key];
  if (text === undefined || text === null) return { text: '', length: 0, cut: false, missing: true };
  const value = typeof text === 'string' ? text : JSON.stringify(text);
  const length = new TextEncoder().encode(value).length;
  return { text: value, length: bytes ?? length, cut: bytes !== undefined && bytes > length };
}

function fromBase64(text) {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return new TextEncoder().encode(text);
  }
}

/** Begins in one line of a table. */
export function preview(object, key, chars = 200) {
  const payload = payloadOf(object, key);
  if (payload.bytes) return `${number(payload.length)} bytes: ${hexWords(payload.bytes.subarray(0, 24))}`;
  return payload.text.length > chars ? `${payload.text.slice(0, chars)}…` : payload.text;
}

const hex = (byte) => byte.toString(16).padStart(2, '0');
const hexWords = (bytes) => Array.from(bytes, hex).join(' ');

/** As hexdump -C. */
export function hexDump(bytes) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, HEX_BYTES); at += 16) {
    const part = bytes.subarray(at, at + 16);
    const text = Array.from(part, (b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : '.')).join('');
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hexWords(part).padEnd(47)}  ${text}`);
  }
  if (bytes.length > HEX_BYTES) lines.push(`… ${number(bytes.length - HEX_BYTES)} bytes more`);
  return lines.join('\n');
}

/** JSON with line breaks, its tokens as they were written: numbers keep their digits. null: it is no JSON. */
export function indentJson(text) {
  const start = text.trimStart()[0];
  if (start !== '{' && start !== '[') return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let depth = 0;
  let out = '';
  const newline = () => `\n${'  '.repeat(depth)}`;
  tokens.forEach((token, i) => {
    if (token === '}' || token === ']') {
      depth--;
      out += (tokens[i - 1] === '{' || tokens[i - 1] === '[' ? '' : newline()) + token;
    } else if (token === '{' || token === '[') {
      depth++;
      out += token + (tokens[i + 1] === '}' || tokens[i + 1] === ']' ? '' : newline());
    } else if (token === ',') out += token + newline();
    else out += token === ':' ? ': ' : token;
  });
  return out;
}

export async function copyText(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    done = copyBySelection(text);
  }
  const before = button.textContent;
  button.textContent = done ? 'Copied' : 'Not copied';
  setTimeout(() => (button.textContent = before), 1200);
}

// The clipboard interface is there on https and localhost alone.
function copyBySelection(text) {
  const area = h('textarea', { class: 'off-screen', 'aria-hidden': 'true' });
  area.value = text;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

function copyButton(payload, label) {
  const text = () => payload.text ?? btoa(Array.from(payload.bytes, (b) => String.fromCharCode(b)).join(''));
  const name = payload.bytes ? 'Copy base64' : 'Copy';
  const button = h('button', { type: 'button', class: 'small', 'aria-label': `${name}: ${label}` }, name);
  button.addEventListener('click', () => copyText(text(), button));
  return button;
}

function saveBytes(payload, name) {
  const blob = new Blob([payload.bytes ?? payload.text], { type: 'application/octet-stream' });
  const url = URL.createObjectURL(blob);
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function kindText(payload, pretty) {
  if (payload.bytes) return 'not UTF-8';
  return pretty === null ? 'text' : 'JSON';
}

/** A block with the payload, its size, and what can be done with it. whole: the path that has all of it. */
export function payloadNode(payload, label, whole = null) {
  const root = h('div', { class: 'payload' });
  draw(root, payload, label, whole);
  return root;
}

function draw(root, payload, label, whole) {
  if (payload.length === 0) {
    fill(root, h('p', { class: 'none' }, 'empty'));
    return;
  }
  const pretty = payload.bytes || payload.cut ? null : indentJson(payload.text);
  const body = payload.bytes ? hexDump(payload.bytes) : safe(pretty ?? payload.text);
  const shown = body.length > SHOWN_CHARS ? body.slice(0, SHOWN_CHARS) : body;
  const pre = h('pre', { tabindex: 0, role: 'region', 'aria-label': label }, shown);
  const bar = h(
    'div',
    { class: 'payload-bar' },
    h('span', null, `${number(payload.length)} bytes, ${kindText(payload, pretty)}`),
    payload.cut && h('span', { class: 'warn-text' }, 'cut'),
    copyButton(payload, label),
  );
  if (payload.cut && whole) bar.append(wholeButton(root, label, whole));
  if (payload.bytes || payload.length > 4096) {
    const save = h('button', { type: 'button', class: 'small' }, 'Save as file');
    save.addEventListener('click', () => saveBytes(payload, `${label.replace(/[^A-Za-z0-9_-]+/g, '-')}.bin`));
    bar.append(save);
  }
  fill(root, bar, pre);
  if (shown.length < body.length) root.append(restButton(pre, body));
}

function wholeButton(root, label, whole) {
  const button = h('button', { type: 'button', class: 'small' }, 'Load all of it');
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      const bytes = await getBytes(whole);
      draw(root, decoded(bytes), label, null);
    } catch (error) {
      button.replaceWith(h('span', { class: 'warn-text' }, error.message));
    }
  });
  return button;
}

export function decoded(bytes) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, length: bytes.length, cut: false };
  } catch {
    return { bytes, length: bytes.length, cut: false };
  }
}

function restButton(pre, body) {
  const rest = h('button', { type: 'button', class: 'small' }, `Show all ${number(body.length)} characters`);
  rest.addEventListener('click', () => {
    pre.textContent = body;
    rest.remove();
  });
  return rest;
}
