// Elements are made of text alone: nothing in these pages ever parses HTML that it was given.
const SVG = 'http://www.w3.org/2000/svg';

function apply(node, props) {
  for (const [key, value] of Object.entries(props ?? {})) {
    const words = key.startsWith('aria-'); // true and false are values there
    if (value === undefined || value === null || (value === false && !words)) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true && !words ? '' : String(value));
  }
}

/** h('p', {class: 'note'}, 'text', node, null): text is text, null and false are left out. */
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  apply(node, props);
  append(node, children);
  return node;
}

export function svg(tag, props, ...children) {
  const node = document.createElementNS(SVG, tag);
  apply(node, props);
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces what node has by these children. */
export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

/** Runs fn at once, and not again within ms: what is asked meanwhile is done once, afterwards. */
export function throttle(fn, ms) {
  let timer = null;
  let again = false;
  const run = () => {
    again = false;
    timer = setTimeout(() => {
      timer = null;
      if (again) run();
    }, ms);
    fn();
  };
  const call = () => {
    if (timer === null) run();
    else again = true;
  };
  call.stop = () => clearTimeout(timer);
  return call;
}

/** Runs fn once it has not been asked for ms. */
export function debounce(fn, ms) {
  let timer = null;
  const call = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => fn(...args), ms);
  };
  call.stop = () => clearTimeout(timer);
  return call;
}

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Control and direction characters as \x1b and \u202e, as the command prints them: a stored text cannot forge another. */
export function safe(text) {
  return String(text).replace(CONTROL, (c) => {
    const code = c.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** The same in one line. */
export function line(text) {
  return safe(String(text).replace(/\n/g, '\\n').replace(/\t/g, ' '));
}

export function number(n) {
  return n === null || n === undefined ? '–' : Number(n).toLocaleString();
}
