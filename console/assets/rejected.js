// Messages that no engine could take.
import { get } from './api.js';
import { h, fill, line, number } from './dom.js';
import { payloadNode, payloadOf } from './payload.js';
import { timeNode } from './time.js';
import { empty, errorBox, facts } from './ui.js';

const PAGE_ROWS = 50;

/** By code; docs/errors.md has the same. */
const ADVICE = {
  format: 'A client sent what this version cannot read: update it, or ask who writes to this subject.',
  unknown: 'A newer client sent a kind of message that these engines do not know: update the engines.',
  limit: 'The message is larger than the namespace allows: send less, or start the engines with a higher --payload-max.',
};

function card(r) {
  return h(
    'article',
    { class: 'card', 'aria-label': `message ${r.number}` },
    h('div', { class: 'title-line' }, h('span', { class: 'badge s-failed' }, line(r.code)), h('h2', { class: 'as-text' }, line(r.reason)), h('span', { class: 'quiet' }, timeNode(r.time, { ago: true }))),
    h('p', null, ADVICE[String(r.code).toLowerCase()] ?? 'The engines have skipped it and go on; its sender was told if it waited. See the code in errors.md.'),
    facts([
      ['number', number(r.number)],
      ['subject', h('span', { class: 'mono' }, line(r.subject))],
      ['partition', r.partition],
      ['sequence', number(r.sequence)],
      ['bytes', number(r.bytes)],
    ]),
    h('details', null, h('summary', null, 'Payload'), payloadNode(payloadOf(r, 'payload'), `payload of message ${r.number}`)),
  );
}

class RejectedPage {
  constructor() {
    this.list = h('div');
    this.foot = h('div');
    this.node = h('div', { class: 'page' }, h('h1', null, 'Rejected'), h('p', { class: 'quiet' }, 'Messages that no engine could take: they are kept here with the reason, and are not tried again.'), this.list, this.foot);
    this.load(null);
  }

  async load(next) {
    try {
      const page = await get('/rejected', { next, limit: PAGE_ROWS });
      const cards = page.rejected.map(card);
      if (next) this.list.append(...cards);
      else fill(this.list, cards.length > 0 ? cards : empty('Nothing was rejected.', 'On the command line:', 'thole rejected'));
      fill(this.foot, page.next && h('button', { type: 'button', onclick: () => this.load(page.next) }, 'More'));
    } catch (error) {
      fill(this.foot, errorBox(error, () => this.load(next)));
    }
  }
}

export function mount() {
  const page = new RejectedPage();
  return { title: 'Rejected', node: page.node, reconnected: () => page.load(null), close: () => {} };
}
