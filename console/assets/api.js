// Requests to the server of this page, and what it answers when it refuses.
const BASE = '/api/v1';
const TOKEN_KEY = 'thole.token';
let csrf = '';

/** What the server says: {title, detail, code, status}, as RFC 9457 has it. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.name = 'Refusal';
    this.status = status;
    this.problem = problem;
    this.code = problem.code ?? '';
    this.hint = problem.hint ?? '';
  }
}

export function token() {
  return sessionStorage.getItem(TOKEN_KEY) ?? '';
}

export function setToken(text) {
  if (text) sessionStorage.setItem(TOKEN_KEY, text);
  else sessionStorage.removeItem(TOKEN_KEY);
}

function headers(more) {
  const all = { accept: 'application/json', ...more };
  if (token()) all.authorization = `Bearer ${token()}`;
  return all;
}

async function problemOf(response) {
  try {
    const body = await response.json();
    if (body && typeof body === 'object') return body;
  } catch {
    // not JSON: a proxy's page
  }
  return { title: `the server answered ${response.status} ${response.statusText}` };
}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(BASE + path, { ...options, cache: 'no-store', credentials: 'same-origin' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refusal(0, {
      title: 'the console does not answer',
      detail: 'The console does not answer: is thole console still running?',
    });
  }
  if (!response.ok) throw new Refusal(response.status, await problemOf(response));
  return response;
}

export function query(params) {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(params ?? {}))
    if (value !== undefined && value !== null && value !== '') search.set(key, value);
  const text = search.toString();
  return text ? `?${text}` : '';
}

export async function get(path, params, signal) {
  return (await answer(path + query(params), { headers: headers(), signal })).json();
}

/** Bytes of a payload that was too long for JSON. */
export async function getBytes(path) {
  return new Uint8Array(await (await answer(path, { headers: headers({ accept: '*/*' }) })).arrayBuffer());
}

export async function post(path, body) {
  const send = () =>
    answer(path, {
      method: 'POST',
      headers: headers({ 'content-type': 'application/json', 'x-thole-csrf': csrf }),
      body: JSON.stringify(body ?? {}),
    });
  let response;
  try {
    response = await send();
  } catch (error) {
    // A console that was started anew has another token: ask for it, once.
    if (!(error instanceof Refusal) || error.status !== 403 || !(await csrfChanged())) throw error;
    response = await send();
  }
  const text = await response.text();
  return text ? JSON.parse(text) : {};
}

async function csrfChanged() {
  const before = csrf;
  await session();
  return csrf !== before;
}

export async function session() {
  const told = await get('/session');
  csrf = told.csrf ?? '';
  return told;
}

export function instancePath(id, rest = '') {
  return `/instances/${encodeURIComponent(id)}${rest}`;
}
