// What can be asked of one instance. What the server refuses is shown as it says it.
import { instancePath, post } from './api.js';
import { field, openDialog, toast } from './dialog.js';
import { h, line } from './dom.js';
import { payloadNode, payloadOf } from './payload.js';
import { hasEnded } from './status.js';

const REASON = { cancel: true, terminate: true, pause: true, resume: true, retry: true };

/** The verbs that have an effect on an instance of this status. */
export function verbsFor(status) {
  if (hasEnded(status)) return ['query'];
  const verbs = ['signal', 'query'];
  if (status === 'Paused') verbs.push('resume');
  else verbs.push('pause');
  if (status === 'Stuck') verbs.push('retry');
  return verbs.concat('cancel', 'terminate');
}

const TEXTS = {
  signal: ['Signal', 'Sends an event to the instance; it waits until the code takes it.'],
  query: ['Query', 'Asks the code of the instance; nothing is written to its history.'],
  pause: ['Pause', 'No turn runs until it is resumed; activities that run go on.'],
  resume: ['Resume', 'Goes on where it was paused.'],
  retry: ['Retry', 'Tries the instance again with the code of the engines: its crash count is cleared, its history is replayed.'],
  cancel: ['Cancel', 'Its code is told, its running activities are cancelled, and it may undo what it did.'],
  terminate: ['Terminate', 'Ends it at once, without its code: nothing is undone.'],
};

export function actionBar(context, info, done) {
  const { session } = context;
  if (!session.actions) return h('p', { class: 'quiet read-only' }, 'Read-only: ', session.actions_why ?? 'this console does not allow actions', ' ', context.signIn());
  return h(
    'div',
    { class: 'button-row', role: 'group', 'aria-label': 'Actions' },
    verbsFor(info.status).map((verb) =>
      h('button', { type: 'button', class: verb === 'terminate' ? 'danger-quiet' : '', onclick: () => ask(verb, info, done) }, `${TEXTS[verb][0]}…`),
    ),
  );
}

function ask(verb, info, done) {
  if (verb === 'signal') return askSignal(info, done);
  if (verb === 'query') return askQuery(info);
  return askControl(verb, info, done);
}

function askControl(verb, info, done) {
  const [title, text] = TEXTS[verb];
  const reason = h('input', { type: 'text', maxlength: 1000, autocomplete: 'off' });
  const typed = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' });
  const confirm = verb === 'terminate';
  openDialog({
    title: `${title} ${line(info.instance)}`,
    body: [
      h('p', null, text),
      REASON[verb] && field('Reason', reason, 'It is kept in the history.'),
      confirm && field('Type the id to confirm', typed, line(info.instance)),
    ],
    action: title,
    danger: verb === 'terminate' || verb === 'cancel',
    ready: () => !confirm || typed.value === info.instance,
    run: async () => {
      const told = await post(instancePath(info.instance, `/${verb}`), { reason: reason.value });
      toast(told.note ? `accepted, but ${line(told.note)}` : `${verb} of ${line(info.instance)} accepted`);
      done();
    },
  });
}

function askSignal(info, done) {
  const waited = (info.pending ?? []).filter((p) => p.kind === 'event').map((p) => p.name);
  const name = h('input', { type: 'text', required: true, autocomplete: 'off', spellcheck: 'false', value: waited[0] ?? '' });
  const data = h('textarea', { rows: 5, spellcheck: 'false' });
  openDialog({
    title: `Signal ${line(info.instance)}`,
    body: [
      h('p', null, TEXTS.signal[1]),
      field('Name of the event', name, waited.length > 0 ? `It waits for: ${waited.map(line).join(', ')}` : 'It waits for no event now.'),
      field('Data', data, 'Text or JSON, as the code expects it.'),
    ],
    action: 'Send',
    ready: () => name.value !== '',
    run: async () => {
      const told = await post(instancePath(info.instance, '/signal'), { name: name.value, data: data.value });
      toast(told.note ? `accepted, but ${line(told.note)}` : `event ${line(name.value)} sent to ${line(info.instance)}`);
      done();
    },
  });
}

function askQuery(info) {
  const name = h('input', { type: 'text', required: true, autocomplete: 'off', spellcheck: 'false' });
  const input = h('textarea', { rows: 3, spellcheck: 'false' });
  openDialog({
    title: `Query ${line(info.instance)}`,
    body: [h('p', null, TEXTS.query[1]), field('Name of the query', name), field('Input', input)],
    action: 'Ask',
    ready: () => name.value !== '',
    run: async () => {
      const told = await post(instancePath(info.instance, '/query'), { name: name.value, input: input.value });
      return h('div', null, h('h3', null, 'Answer'), payloadNode(payloadOf(told, 'output'), 'answer'));
    },
  });
}
