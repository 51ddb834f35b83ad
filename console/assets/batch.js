// One action on all instances that fit the filters: first what it hits, then the question.
import { post } from './api.js';
import { field, openDialog, toast } from './dialog.js';
import { h, fill, line, number } from './dom.js';
import { badge } from './status.js';
import { errorBox } from './ui.js';

const ACTIONS = { cancel: 'Cancel', terminate: 'Terminate', retry: 'Retry' };

export function batchMenu(context, filterOf, done) {
  if (!context.session.actions) return null;
  return h(
    'div',
    { class: 'button-row', role: 'group', 'aria-label': 'Actions on all that fit the filters' },
    h('span', { class: 'quiet' }, 'All of these:'),
    Object.entries(ACTIONS).map(([action, title]) =>
      h('button', { type: 'button', class: 'small', 'data-batch': action, onclick: () => ask(action, filterOf(), done) }, `${title}…`),
    ),
  );
}

function sampleList(preview) {
  const rows = (preview.sample ?? []).map((one) => {
    const id = typeof one === 'string' ? one : one.instance;
    return h('li', null, one.status ? [badge(one.status), ' '] : null, h('span', { class: 'mono' }, line(id)));
  });
  const rest = preview.count - rows.length;
  return h('ul', { class: 'sample' }, rows, rest > 0 && h('li', { class: 'none' }, `and ${number(rest)} more`));
}

function filterText(filter) {
  const words = Object.entries(filter).map(([key, value]) => `${key.replace(/_/g, ' ')} ${line(value)}`);
  return words.length > 0 ? words.join(', ') : 'none: every instance of the namespace';
}

async function ask(action, filter, done) {
  const hits = h('div', { class: 'hits', 'aria-live': 'polite' }, h('p', { class: 'quiet' }, 'counting what it hits …'));
  const reason = h('input', { type: 'text', maxlength: 1000, autocomplete: 'off' });
  const typed = h('input', { type: 'text', inputmode: 'numeric', autocomplete: 'off' });
  const confirm = h('div');
  const state = { count: null };
  const opened = openDialog({
    title: `${ACTIONS[action]} all that fit`,
    body: [h('p', null, `Filters: ${filterText(filter)}`), hits, field('Reason', reason, 'It is kept in each history.'), confirm],
    action: ACTIONS[action],
    danger: action !== 'retry',
    ready: () => state.count > 0 && (action === 'retry' || Number(typed.value) === state.count),
    run: async () => {
      const told = await post('/batch', { action, filter, reason: reason.value, preview: false, expect: state.count });
      done();
      return report(action, told, state, opened);
    },
  });
  try {
    const preview = await post('/batch', { action, filter, preview: true });
    state.count = preview.count;
    fill(hits, preview.count === 0 ? h('p', null, 'It hits no instance.') : [h('p', null, 'It hits ', h('b', null, number(preview.count)), preview.count === 1 ? ' instance:' : ' instances:'), sampleList(preview)]);
    if (preview.count > 0 && action !== 'retry') fill(confirm, field('Type the number of instances to confirm', typed, String(preview.count)));
    opened.check();
  } catch (error) {
    fill(hits, errorBox(error));
  }
}

function report(action, told, state, opened) {
  state.count = null; // once
  const errors = told.errors ?? [];
  if (!told.failed) {
    toast(`${action} of ${number(told.done)} instances accepted`);
    opened.dialog.close();
    return null;
  }
  const text = (one) => (typeof one === 'string' ? line(one) : `${line(one.instance ?? '')}: ${line(one.message ?? one.detail ?? '')}`);
  return h('div', null, h('p', null, `${number(told.done)} accepted, ${number(told.failed)} refused:`), h('ul', null, errors.map((one) => h('li', null, text(one)))));
}
