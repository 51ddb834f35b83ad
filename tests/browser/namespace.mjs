// A namespace with real servers, a real engine and worker (examples/checkout), and the console of thole dev.
import { spawn, execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const build = process.env.THOLE_BUILD ?? join(import.meta.dirname, '../../build/dev');
const thole = join(build, 'cli/thole');
const SCHEMA = 'thole_default';
const READY_MS = 60000;

/** Resolves with the first match of pattern in what the program writes. */
function said(child, pattern) {
  return new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`no ${pattern} in: ${text}`)), READY_MS);
    const take = (chunk) => {
      text += chunk;
      const found = pattern.exec(text);
      if (!found) return;
      clearTimeout(timer);
      resolve(found);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('exit', (code) => reject(new Error(`ended with ${code}: ${text}`)));
  });
}

async function end(child) {
  if (!child || child.exitCode !== null) return;
  const gone = new Promise((done) => child.once('exit', done));
  child.kill('SIGTERM');
  await gone;
}

export class Namespace {
  async start() {
    this.folder = await mkdtemp(join(tmpdir(), 'thole-browser-'));
    await chmod(this.folder, 0o755); // Postgres runs as another user when this is root
    const dir = join(this.folder, 'data');
    this.dev = spawn(thole, ['dev', '--dir', dir], { stdio: ['ignore', 'pipe', 'pipe'] });
    const [, url] = await said(this.dev, /Console\s+(http:\S+?)\/?\s[\s\S]*?Data/);
    this.url = url;
    this.env = { ...process.env, ...(await this.variables(dir)) };
    await this.serve();
    return this;
  }

  async variables(dir) {
    const { stdout } = await run('bash', ['-c', `. "${dir}/env" && env`], { env: {} });
    return Object.fromEntries(stdout.split('\n').filter((l) => l.startsWith('THOLE_')).map((l) => [l.slice(0, l.indexOf('=')), l.slice(l.indexOf('=') + 1)]));
  }

  async serve(example = 'checkout') {
    const child = spawn(join(build, 'examples', example), ['run'], { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    (this.programs ??= []).push(child);
    await said(child, /serving/);
  }

  async thole(...words) {
    return (await run(thole, words, { env: this.env })).stdout;
  }

  /** Another console, with these options; its address. */
  async console(...options) {
    const child = spawn(thole, ['console', '--http', '127.0.0.1:0', ...options], { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    (this.programs ??= []).push(child);
    return (await said(child, /(http:\/\/\S+?)\/\s/))[1];
  }

  /** A statement in the schema of the namespace, by psql. */
  async sql(statement) {
    const psql = process.env.POSTGRES_BIN ? join(process.env.POSTGRES_BIN, 'psql') : 'psql';
    return (await run(psql, ['-X', '-v', 'ON_ERROR_STOP=1', '-c', `SET search_path = ${SCHEMA}`, '-c', statement, this.env.THOLE_POSTGRES])).stdout;
  }

  async stop() {
    for (const child of this.programs ?? []) await end(child);
    await end(this.dev);
    await rm(this.folder, { recursive: true, force: true });
  }
}
