// Messages that no engine could take.
import { get } from './api.js';
import { h, fill, line, number } from './dom.js';
import { payloadNode, payloadOf } from './payload.js';
import { timeNode } from './time.js';
import { empty, errorBox, facts } from './ui.js';

const PAGE_ROWS = 50;

const SENDER = 'Mend the sender: docs/wire.md has the bytes of each message to compare with.';
/** By code, as docs/errors.md has it. */
const ADVICE = {
  subject: 'The sender does not percent-encode the id, or not as docs/wire.md says.',
  partition: "The sender's CRC-32 or its number of partitions is wrong.",
  malformed: SENDER,
  unsupported: 'Update the engines first, then send it again.',
  instance: SENDER,
  request_id: SENDER,
  too_large: 'Send a reference instead of the data.',
  too_many: 'Too many events wait: are the id and the name of the event right? Start the instance, or delete the id to give them up.',
  route: 'Kind or name in the subject are not those of the message. ' + SENDER,
  nonce: 'A result that is not from a worker with the work message: look who may publish to this subject.',
  unreadable: 'The history of the instance is damaged: terminate it.',
};

function card(r) {
  return h(
    'article',
    { class: 'card', 'aria-label': `message ${r.number}` },
    h('div', { class: 'title-line' }, h('span', { class: 'badge s-failed' }, line(r.code)), h('h2', { class: 'as-text' }, line(r.reason)), h('span', { class: 'quiet' }, timeNode(r.time, { ago: true }))),
    h('p', null, ADVICE[r.code] ?? 'docs/errors.md says what its code means.'),
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
