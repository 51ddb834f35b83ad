// Paths and what they show. The address is the whole state: it can be kept, sent, and opened anew.
export const ROUTES = [
  { path: '/instances', page: 'list' },
  { path: '/instances/:id', page: 'instance' },
  { path: '/queues', page: 'queues' },
  { path: '/engines', page: 'engines' },
  { path: '/stuck', page: 'stuck' },
  { path: '/rejected', page: 'rejected' },
  { path: '/start', page: 'start' },
];

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** {page, params, query} of a path; page is 'lost' when there is none. */
export function match(pathname, search = '') {
  const query = Object.fromEntries(new URLSearchParams(search));
  const parts = (pathname === '/' ? '/instances' : pathname).replace(/\/+$/, '').split('/');
  for (const route of ROUTES) {
    const wanted = route.path.split('/');
    if (wanted.length !== parts.length) continue;
    const params = {};
    const fits = wanted.every((word, i) => {
      if (!word.startsWith(':')) return word === parts[i];
      params[word.slice(1)] = decode(parts[i]);
      return parts[i] !== '';
    });
    if (fits) return { page: route.page, params, query };
  }
  return { page: 'lost', params: {}, query };
}

export function instanceHref(id, query = '') {
  return `/instances/${encodeURIComponent(id)}${query}`;
}

export class Router {
  constructor(onChange) {
    this.onChange = onChange;
    addEventListener('popstate', () => this.onChange(this.here()));
    document.addEventListener('click', (event) => this.click(event));
  }

  here() {
    return match(location.pathname, location.search);
  }

  go(href) {
    history.pushState(null, '', href);
    this.onChange(this.here());
  }

  /** The same page with other filters: no new entry in the browser's history. */
  setQuery(query) {
    const text = new URLSearchParams(Object.entries(query).filter(([, v]) => v)).toString();
    history.replaceState(null, '', location.pathname + (text ? `?${text}` : ''));
  }

  click(event) {
    const link = event.target.closest?.('a[href]');
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (link.getAttribute('href').startsWith('#')) return;
    event.preventDefault();
    this.go(link.pathname + link.search);
  }
}
