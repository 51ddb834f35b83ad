// Instances that do not go on by themselves: why, and what to do.
import { get, instancePath, post } from './api.js';
import { openDialog, toast, field } from './dialog.js';
import { h, fill, line, throttle } from './dom.js';
import { preview } from './payload.js';
import { instanceHref } from './router.js';
import { badge } from './status.js';
import { timeNode } from './time.js';
import { commandLine, empty, errorBox, section } from './ui.js';

const REFRESH_MS = 500;
const SHOWN = 200;

/** What helps, by the reason; of rows of an earlier version by what the detail says. */
const ADVICE = [
  [/too_new|newer version of thole/i, 'The history was written by a newer version of thole: run engines of that version.', () => 'thole version'],
  [/damaged|cannot be read|checksum/i, 'The history is damaged: compare it with what was written, then terminate the instance.', (id) => `thole audit verify ${id}`],
  [/crash/i, 'Its code crashes the engine: mend the code and deploy it, then retry.', (id) => `thole retry ${id}`],
  [/limit/i, 'It is over a limit: schedule less at a time, continue as new, or start the engines with a higher limit; then retry.', (id) => `thole retry ${id}`],
  [/divergence|.*/, 'Its code decides otherwise than its history: deploy code that decides as before, or a new version beside it; then retry.', (id) => `thole diff ${id} -- PROGRAM`],
];

const quoted = (id) => (/^[A-Za-z0-9_.:@/-]+$/.test(id) ? id : `'${line(id).replace(/'/g, "'\\''")}'`);

function advice(row) {
  const detail = preview(row, 'detail', 2000);
  const [, text, command] = ADVICE.find(([pattern]) => pattern.test(row.reason ?? detail));
  return [h('p', null, text), commandLine(command(quoted(row.instance)))];
}

class StuckPage {
  constructor(context) {
    this.context = context;
    this.refresh = throttle(() => this.load(), REFRESH_MS);
    this.stuck = h('div');
    this.waiting = h('div');
    this.node = h(
      'div',
      { class: 'page' },
      h('h1', null, 'Stuck'),
      h('p', { class: 'quiet' }, 'Instances that do not go on until someone does something. Their histories are not changed meanwhile.'),
      this.stuck,
      section('Waiting for code', 'h-waiting', h('p', { class: 'quiet' }, 'The engine that has their partition lacks their orchestration or its version. They continue as soon as one has it: all engines of a namespace must have the same orchestrations.'), this.waiting),
    );
    this.load();
  }

  load() {
    return Promise.all([
      this.part('stuck', this.stuck, (row) => this.card(row, advice(row)), 'No instance is stuck.'),
      this.part('waiting', this.waiting, (row) => this.card(row, [h('p', null, `Start an engine that has ${line(row.orchestration)}${row.version ? `@${row.version}` : ''}:`), commandLine('PROGRAM run')]), 'None.'),
    ]);
  }

  async part(status, box, card, none) {
    try {
      const { instances, complete } = await get('/instances', { status, limit: SHOWN });
      if (instances.length === 0) fill(box, status === 'stuck' ? empty(none, 'Nothing to do here.') : h('p', { class: 'none' }, none));
      else fill(box, instances.map(card), !complete && h('p', null, h('a', { href: `/instances?status=${status}` }, 'all of them')));
    } catch (error) {
      fill(box, errorBox(error, () => this.load()));
    }
  }

  card(row, help) {
    return h(
      'article',
      { class: 'card', 'aria-label': line(row.instance) },
      h('div', { class: 'title-line' }, badge(row.status), h('h3', null, h('a', { href: instanceHref(row.instance), class: 'mono' }, line(row.instance))), h('span', { class: 'quiet' }, line(row.orchestration), ', since ', timeNode(row.updated, { ago: true }))),
      preview(row, 'detail', 2000) && h('p', { class: 'detail loud' }, line(preview(row, 'detail', 2000))),
      help,
      this.context.session.actions && row.status === 'Stuck' && h('button', { type: 'button', onclick: () => this.retry(row) }, 'Retry…'),
    );
  }

  retry(row) {
    const reason = h('input', { type: 'text', maxlength: 1000, autocomplete: 'off' });
    openDialog({
      title: `Retry ${line(row.instance)}`,
      body: [h('p', null, 'Its history is replayed with the code of the engines.'), field('Reason', reason, 'It is kept in the history.')],
      action: 'Retry',
      run: async () => {
        await post(instancePath(row.instance, '/retry'), { reason: reason.value });
        toast(`retry of ${line(row.instance)} accepted`);
        this.refresh();
      },
    });
  }
}

export function mount(context) {
  const page = new StuckPage(context);
  return {
    title: 'Stuck',
    node: page.node,
    changed: () => page.refresh(),
    every: [2000, () => page.refresh()], // nothing is told when an instance becomes Stuck
    reconnected: () => page.refresh(),
    close: () => page.refresh.stop(),
  };
}
