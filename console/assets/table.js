// A table of any number of rows, of which only the visible ones exist.
import { h } from './dom.js';

const EXTRA_ROWS = 6; // above and below what is visible
const NEAR_ROWS = 40; // from the end: more is asked for
let tables = 0;

export class VirtualTable {
  /**
   * columns: [{name, class, cell(row)}], cell gives a node or a text. key(row) is unique.
   * onOpen(row): Enter or a click; onSelect(row): the selection has moved; onEnd(): the end is near.
   */
  constructor({ label, columns, key, onOpen, onSelect, onEnd, kind = '' }) {
    Object.assign(this, { columns, key, onOpen, onSelect, onEnd });
    this.rows = [];
    this.drawn = new Map(); // index -> {row, node}
    this.selected = null; // a key
    this.id = `table-${++tables}`;
    this.body = h('div', { class: 'vt-body', role: 'rowgroup' });
    const heads = columns.map((c) => h('div', { role: 'columnheader', class: `vt-cell ${c.class ?? ''}` }, c.name));
    this.node = h(
      'div',
      { class: `vt ${kind}`, role: 'grid', 'aria-label': label, 'aria-readonly': 'true', tabindex: 0 },
      h('div', { class: 'vt-head', role: 'rowgroup' }, h('div', { class: 'vt-row', role: 'row', 'aria-rowindex': 1 }, heads)),
      this.body,
    );
    this.node.addEventListener('scroll', () => this.draw(), { passive: true });
    this.node.addEventListener('keydown', (event) => this.keydown(event));
    this.body.addEventListener('click', (event) => this.click(event));
    this.observer = new ResizeObserver(() => {
      this.measure();
      this.draw();
    });
    this.observer.observe(this.node);
  }

  close() {
    this.observer.disconnect();
  }

  /** Of the style sheet: rows are taller where the screen is narrow. Nothing is known while the table is not shown. */
  measure() {
    const probe = h('div', { class: 'vt-row probe' });
    this.body.append(probe);
    const height = probe.offsetHeight;
    probe.remove();
    if (height > 0 && height !== this.height) {
      this.height = height;
      for (const { node } of this.drawn.values()) node.remove();
      this.drawn.clear();
    }
  }

  setRows(rows) {
    this.rows = rows;
    this.node.setAttribute('aria-rowcount', rows.length + 1);
    this.draw();
  }

  draw() {
    if (!this.height) this.measure();
    if (!this.height) return;
    this.body.style.height = `${this.rows.length * this.height}px`;
    const top = Math.max(0, this.node.scrollTop - this.body.offsetTop + (this.node.firstChild.offsetHeight ?? 0));
    const first = Math.max(0, Math.floor(top / this.height) - EXTRA_ROWS);
    const count = Math.ceil(this.node.clientHeight / this.height) + 2 * EXTRA_ROWS;
    const last = Math.min(this.rows.length, first + count);
    for (const [index, { node }] of this.drawn)
      if (index < first || index >= last) {
        node.remove();
        this.drawn.delete(index);
      }
    for (let index = first; index < last; index++) this.drawRow(index);
    if (last >= this.rows.length - NEAR_ROWS) this.onEnd?.();
  }

  drawRow(index) {
    const row = this.rows[index];
    const old = this.drawn.get(index);
    if (old?.row === row) {
      this.mark(old.node, row);
      return;
    }
    const cells = this.columns.map((c) =>
      h('div', { role: 'gridcell', class: `vt-cell ${c.class ?? ''}` }, c.cell(row)),
    );
    const node = h('div', { class: 'vt-row', role: 'row', id: `${this.id}-${index}`, 'aria-rowindex': index + 2 }, cells);
    node.style.transform = `translateY(${index * this.height}px)`;
    this.mark(node, row);
    if (old) old.node.replaceWith(node);
    else this.body.append(node);
    this.drawn.set(index, { row, node });
  }

  mark(node, row) {
    const is = this.selected !== null && this.key(row) === this.selected;
    node.classList.toggle('selected', is);
    node.setAttribute('aria-selected', is);
    if (is) this.node.setAttribute('aria-activedescendant', node.id);
  }

  selectedIndex() {
    return this.selected === null ? -1 : this.rows.findIndex((row) => this.key(row) === this.selected);
  }

  select(index, { quiet = false, near = true } = {}) {
    if (index < 0 || index >= this.rows.length) return;
    this.selected = this.key(this.rows[index]);
    if (near) this.reveal(index);
    this.draw();
    if (!quiet) this.onSelect?.(this.rows[index]);
  }

  reveal(index) {
    if (!this.height) this.measure();
    const head = this.node.firstChild.offsetHeight;
    const top = index * this.height;
    const view = this.node.clientHeight - head;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + this.height > this.node.scrollTop + view) this.node.scrollTop = top + this.height - view;
  }

  move(delta) {
    const at = this.selectedIndex();
    this.select(at < 0 ? 0 : Math.min(this.rows.length - 1, Math.max(0, at + delta)));
  }

  openSelected() {
    const at = this.selectedIndex();
    if (at >= 0) this.onOpen?.(this.rows[at]);
  }

  keydown(event) {
    const page = Math.max(1, Math.floor(this.node.clientHeight / (this.height || 30)) - 2);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in by) this.move(by[event.key]);
    else if (event.key === 'Enter' && event.target === this.node) this.openSelected();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  click(event) {
    const node = event.target.closest('.vt-row');
    const found = [...this.drawn].find(([, drawn]) => drawn.node === node);
    if (!found || event.target.closest('a, button') || String(getSelection()).length > 0) return;
    this.select(found[0], { near: false });
    this.onOpen?.(found[1].row);
  }
}
