// The frame around the pages: who is asked, which page is shown, and the stream that keeps it fresh.
import { get, session, setToken, token } from './api.js';
import { field, openDialog } from './dialog.js';
import { h, fill, line } from './dom.js';
import { Keys, showHelp } from './keys.js';
import { Router } from './router.js';
import { Stream } from './stream.js';
import { namesOf } from './start.js';
import { setServerClock, tickAges } from './time.js';
import { empty, errorBox } from './ui.js';
import * as engines from './engines.js';
import * as instance from './instance.js';
import * as list from './list.js';
import * as queues from './queues.js';
import * as rejected from './rejected.js';
import * as start from './start.js';
import * as stuck from './stuck.js';

const PAGES = { list, instance, queues, engines, stuck, rejected, start };
const TICK_MS = 1000;
const THEMES = ['auto', 'light', 'dark'];
const byId = (id) => document.getElementById(id);

class App {
  constructor() {
    this.session = null;
    this.router = new Router((place) => this.show(place));
    this.keys = new Keys({ page: () => this.page, go: (href) => this.go(href) });
    this.lastList = '/instances';
    setTheme(localStorage.getItem('thole.theme') ?? 'auto');
    byId('theme').addEventListener('click', nextTheme);
    byId('help').addEventListener('click', showHelp);
    setInterval(() => this.tick(), TICK_MS);
  }

  async begin() {
    try {
      this.session = await session();
    } catch (error) {
      this.refused = error.status === 401;
      fill(byId('main'), h('div', { class: 'page' }, errorBox(error, () => this.begin()), this.signIn()));
      return;
    }
    setServerClock(this.session.now_ms ?? Date.now());
    this.drawSession();
    this.show(this.router.here());
    this.names();
  }

  async names() {
    try {
      const names = new Set(namesOf(await get('/orchestrations')).map((name) => name.split('@')[0]));
      fill(byId('orchestrations'), [...names].sort().map((name) => h('option', { value: name })));
    } catch {
      // no suggestions
    }
  }

  drawSession() {
    const { namespace, user, actions, actions_why: why, version } = this.session;
    fill(byId('namespace'), line(namespace ?? ''));
    byId('brand').title = `thole ${version ?? ''}`;
    const out = token() && h('button', { type: 'button', class: 'small', onclick: () => this.signOut() }, 'Sign out');
    fill(byId('who'), user && h('span', null, line(user)), !actions && h('span', { class: 'tag', title: why ?? '' }, 'read-only'), out);
  }

  signOut() {
    setToken('');
    this.begin();
  }

  /** A button, where a token would help. */
  signIn() {
    if (!this.session?.token && !this.refused) return null;
    return h('button', { type: 'button', class: 'small', onclick: () => this.askToken() }, 'Enter a token…');
  }

  askToken() {
    const input = h('input', { type: 'password', autocomplete: 'off', required: true });
    openDialog({
      title: 'Token',
      body: [h('p', null, 'The one of the file that thole console was given with --token-file. It is kept until this tab is closed.'), field('Token', input)],
      action: 'Use it',
      ready: () => input.value !== '',
      run: async () => {
        const before = token();
        setToken(input.value.trim());
        try {
          const told = await session();
          if (!told.actions) throw new Error(told.actions_why ?? 'it is not accepted');
          this.session = told;
        } catch (error) {
          setToken(before);
          throw error;
        }
        this.begin();
      },
    });
  }

  go(href) {
    this.router.go(href === '/instances' ? this.lastList : href);
  }

  leave() {
    clearInterval(this.every);
    this.every = null;
    this.page?.close();
    this.page = null;
  }

  show(place) {
    if (!this.session) return;
    const was = this.page;
    this.leave();
    const context = {
      ...place,
      session: this.session,
      go: (href) => this.router.go(href),
      setQuery: (query) => {
        this.router.setQuery(query);
        this.keepList(place.page);
      },
      signIn: () => this.signIn(),
      follow: (id, from) => this.follow(id, from),
    };
    this.page = PAGES[place.page] ? PAGES[place.page].mount(context) : lost();
    this.keepList(place.page);
    fill(byId('main'), this.page.node);
    document.title = `${this.page.title} – thole`;
    byId('where').textContent = this.page.title; // a screen reader says where it is now
    for (const link of document.querySelectorAll('nav a')) mark(link, place.page);
    if (!this.page.follows) this.follow(null, null);
    if (this.page.every) this.every = setInterval(this.page.every[1], this.page.every[0]);
    if (was) {
      byId('main').scrollTop = 0;
      byId('main').focus({ preventScroll: true });
    }
  }

  keepList(page) {
    if (page === 'list') this.lastList = location.pathname + location.search;
  }

  /** One stream a tab: of a page with an instance from what that has read already. */
  follow(id, from) {
    if (this.stream && this.stream.instance === id) return;
    this.stream?.close();
    const to = (name) => (data) => this.page?.[name]?.(data);
    this.stream = new Stream(id, from, {
      history: to('history'),
      changed: to('changed'),
      end: to('end'),
      reload: to('reconnected'),
      opened: (again) => this.live(true, again),
      lost: () => this.live(false),
    });
  }

  live(on, again) {
    byId('live').className = on ? 'live on' : 'live off';
    byId('live').textContent = on ? 'live' : 'reconnecting';
    if (again) this.page?.reconnected?.();
  }

  tick() {
    if (document.hidden) return;
    tickAges(document);
    this.page?.tick?.();
  }
}

function mark(link, page) {
  const here = link.dataset.page === page || (page === 'instance' && link.dataset.page === 'list');
  if (here) link.setAttribute('aria-current', 'page');
  else link.removeAttribute('aria-current');
}

function lost() {
  return { title: 'No such page', node: h('div', { class: 'page' }, h('h1', null, 'No such page'), empty('There is nothing at this address.', h('a', { href: '/instances' }, 'All instances'))), close: () => {} };
}

function setTheme(theme) {
  const known = THEMES.includes(theme) ? theme : 'auto';
  document.documentElement.dataset.theme = known;
  byId('theme').textContent = { auto: '◐', light: '☀', dark: '☾' }[known];
  byId('theme').setAttribute('aria-label', `Colours: ${known}`);
  byId('theme').title = `Colours: ${known}`;
  localStorage.setItem('thole.theme', known);
}

function nextTheme() {
  const at = THEMES.indexOf(document.documentElement.dataset.theme);
  setTheme(THEMES[(at + 1) % THEMES.length]);
}

new App().begin();
