// Keys that work everywhere, and the page that lists them.
import { openDialog } from './dialog.js';
import { h } from './dom.js';

const HELP = [
  ['/', 'search'],
  ['j  k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['Esc', 'leave the field; back to the list'],
  ['g i  g q  g e', 'go to instances, queues, engines'],
  ['g s  g r  g n', 'go to stuck, rejected, start (new)'],
  ['+  -  0  ← →', 'in a timeline: zoom, all, move'],
  ['?', 'this help'],
];
const PLACES = { i: '/instances', q: '/queues', e: '/engines', s: '/stuck', r: '/rejected', n: '/start' };
const GO_MS = 1200;

export function showHelp() {
  openDialog({
    title: 'Keys',
    body: h('dl', { class: 'help' }, HELP.map(([keys, text]) => h('div', null, h('dt', null, keys.split('  ').map((k) => [h('kbd', null, k), ' '])), h('dd', null, text)))),
  });
}

const inField = (target) => target.closest?.('input, textarea, select, [contenteditable]');

export class Keys {
  /** page() gives the page that is shown, go(href) leaves it. */
  constructor({ page, go }) {
    Object.assign(this, { page, go });
    this.going = 0;
    document.addEventListener('keydown', (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (event.key === 'Escape') return this.escape(event);
    if (inField(event.target)) {
      if (event.key === 'Enter' && event.target === this.page()?.search) this.intoTable(event);
      return;
    }
    if (performance.now() - this.going < GO_MS && PLACES[event.key]) {
      this.going = 0;
      event.preventDefault();
      this.go(PLACES[event.key]);
      return;
    }
    this.plain(event);
  }

  plain(event) {
    const { table, search } = this.page() ?? {};
    const fns = {
      '/': () => search?.select(),
      j: () => table?.move(1),
      k: () => table?.move(-1),
      '?': showHelp,
      g: () => (this.going = performance.now()),
    };
    if (event.key === 'Enter' && table && event.target === document.body) table.openSelected();
    else if (fns[event.key]) fns[event.key]();
    else return;
    event.preventDefault();
  }

  intoTable(event) {
    const { table } = this.page();
    if (!table) return;
    event.preventDefault();
    table.node.focus();
    if (table.selectedIndex() < 0) table.move(1);
  }

  escape(event) {
    if (inField(event.target)) event.target.blur();
    else if (this.page()?.back) this.go(this.page().back);
  }
}
