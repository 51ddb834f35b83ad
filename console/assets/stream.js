// The one stream of server-sent events of this tab.
import { query } from './api.js';

const RETRY_MS = 1000;

export class Stream {
  /** on: {history(event), changed(data), end(data), missing(data), reload(), opened(again), lost()} */
  constructor(instance, from, on) {
    this.instance = instance;
    this.on = on;
    this.last = from; // of a history: the sequence that is known already
    this.opened = 0;
    this.open();
  }

  open() {
    const source = new EventSource(`/api/v1/stream${query({ instance: this.instance, from: this.instance ? this.last || null : null })}`);
    this.source = source;
    source.addEventListener('open', () => this.on.opened?.(this.opened++ > 0));
    source.addEventListener('error', () => this.failed(source));
    for (const type of ['history', 'changed', 'end', 'missing', 'reload'])
      source.addEventListener(type, (event) => this.take(type, event));
  }

  take(type, event) {
    let data;
    try {
      data = JSON.parse(event.data);
    } catch {
      return;
    }
    if (event.lastEventId) this.last = event.lastEventId;
    this.on[type]?.(data);
  }

  /** The browser opens a lost stream again itself; one that was refused it closes. */
  failed(source) {
    this.on.lost?.();
    if (source.readyState !== EventSource.CLOSED || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.open();
    }, RETRY_MS);
  }

  close() {
    clearTimeout(this.timer);
    this.timer = null;
    this.source.close();
  }
}
