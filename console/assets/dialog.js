// A form over the page; Esc closes it, and the focus goes back to where it was.
import { h, fill } from './dom.js';
import { errorBox } from './ui.js';

let ids = 0;

export function field(label, input, hint) {
  const id = `f-${++ids}`;
  input.id = id;
  if (hint) input.setAttribute('aria-describedby', `${id}-hint`);
  return h('div', { class: 'form-field' }, h('label', { for: id }, label), input, hint && h('p', { class: 'hint', id: `${id}-hint` }, hint));
}

/**
 * title; body: nodes; action: what the button says; run(): does it, and gives a node to show, or nothing to close.
 * danger: the button is red. Resolves when it is closed.
 */
export function openDialog({ title, body, action, run, danger = false, ready = () => true }) {
  const id = `d-${++ids}`;
  const result = h('div', { class: 'result', 'aria-live': 'polite' });
  const go = action && h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, action);
  const close = h('button', { type: 'button', onclick: () => dialog.close() }, action ? 'Back' : 'Close');
  const form = h('form', { method: 'dialog' }, h('h2', { id }, title), body, result, h('div', { class: 'buttons' }, close, go));
  const dialog = h('dialog', { 'aria-labelledby': id }, form);
  const check = () => go && (go.disabled = !ready());
  form.addEventListener('input', check);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (!go || go.disabled) return;
    go.disabled = true;
    fill(result, h('p', { class: 'quiet' }, 'asking …'));
    try {
      const shown = await run();
      if (shown) fill(result, shown);
      else dialog.close();
    } catch (error) {
      fill(result, errorBox(error));
    }
    check();
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  check();
  dialog.showModal();
  (form.querySelector('input, textarea, select') ?? close).focus();
  return { dialog, check };
}

let toastTimer = null;

/** A short word at the foot of the page, also for screen readers. */
export function toast(text) {
  const box = document.getElementById('toast');
  box.textContent = text;
  box.classList.add('shown');
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => box.classList.remove('shown'), 4000);
}
