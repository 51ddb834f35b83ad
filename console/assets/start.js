// A form that starts an instance.
import { get, post } from './api.js';
import { field } from './dialog.js';
import { h, fill, line } from './dom.js';
import { instanceHref } from './router.js';
import { commandLine, errorBox } from './ui.js';

const BASE64_CHUNK = 0x8000;

function base64(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += BASE64_CHUNK) text += String.fromCharCode(...bytes.subarray(i, i + BASE64_CHUNK));
  return btoa(text);
}

/** 'name' or 'name@3' of the list of names, however the server writes them. */
export function namesOf(told) {
  return (told.orchestrations ?? []).map((o) => (typeof o === 'string' ? o : (o.orchestration ?? o.name) + (o.version > 1 ? `@${o.version}` : '')));
}

class StartPage {
  constructor(context) {
    this.context = context;
    const text = (more) => h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', ...more });
    this.orchestration = text({ required: true, list: 'orchestrations', value: context.query.orchestration ?? '' });
    this.version = h('input', { type: 'number', min: 1, step: 1 });
    this.id = text({});
    this.input = h('textarea', { rows: 8, spellcheck: 'false' });
    this.file = h('input', { type: 'file' });
    this.result = h('div', { 'aria-live': 'polite' });
    this.hint = h('div');
    this.button = h('button', { type: 'submit', class: 'primary' }, 'Start');
    const form = h(
      'form',
      { class: 'start' },
      field('Orchestration', this.orchestration, this.known()),
      field('Version', this.version, 'Empty: the newest that the engines have.'),
      field('Id', this.id, 'Empty: a new one is made. The same id is never started twice.'),
      field('Input', this.input, 'Text or JSON, as the code expects it.'),
      field('or a file', this.file, 'Its bytes are the input.'),
      this.result,
      h('div', { class: 'buttons' }, this.button),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.send();
    });
    form.addEventListener('input', () => this.drawHint());
    this.node = h('div', { class: 'page narrow' }, h('h1', null, 'Start an instance'), context.session.actions ? null : h('p', { class: 'quiet read-only' }, 'Read-only: ', context.session.actions_why ?? '', ' ', context.signIn()), form, h('p', { class: 'quiet' }, 'The same on the command line:'), this.hint);
    this.button.disabled = !context.session.actions;
    this.drawHint();
    this.suggest();
  }

  known() {
    return 'Its name in the code; names that live engines know are suggested.';
  }

  async suggest() {
    try {
      const names = namesOf(await get('/orchestrations'));
      if (names.length === 1 && !this.orchestration.value) this.orchestration.value = names[0].split('@')[0];
      this.drawHint();
    } catch {
      // no suggestions
    }
  }

  drawHint() {
    const quote = (text) => (/^[A-Za-z0-9_=;.,@/-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
    const words = ['thole start', quote((this.orchestration.value || 'ORCHESTRATION') + (this.version.value ? `@${this.version.value}` : ''))];
    if (this.id.value) words.push('--id', quote(this.id.value));
    if (this.input.value) words.push('--input', quote(this.input.value));
    fill(this.hint, commandLine(line(words.join(' '))));
  }

  async body() {
    const body = { orchestration: this.orchestration.value.trim() };
    const [name, version] = body.orchestration.split('@');
    if (version && !this.version.value) Object.assign(body, { orchestration: name, version: Number(version) });
    if (this.version.value) body.version = Number(this.version.value);
    if (this.id.value) body.id = this.id.value;
    const [file] = this.file.files;
    if (file) body.input_base64 = base64(new Uint8Array(await file.arrayBuffer()));
    else if (this.input.value) body.input = this.input.value;
    return body;
  }

  async send() {
    this.button.disabled = true;
    try {
      const told = await post('/instances', await this.body());
      const id = told.instance ?? told.id;
      fill(this.result, h('p', { class: 'good-text' }, 'Started: ', h('a', { href: instanceHref(id), class: 'mono' }, line(id))));
      this.context.go(instanceHref(id));
    } catch (error) {
      fill(this.result, errorBox(error));
    } finally {
      this.button.disabled = false;
    }
  }
}

export function mount(context) {
  const page = new StartPage(context);
  return { title: 'Start', node: page.node, search: page.orchestration, close: () => {} };
}
