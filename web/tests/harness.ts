// A real relay and a real `npubbot serve`, as processes of their own on loopback, and what a test
// needs of a browser.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, openSync } from 'node:fs';
import { createServer as createWebServer } from 'node:http';
import { createConnection, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import axe, { type AxeResults } from 'axe-core';
import type { Page } from 'playwright';

export const FILE = new URL('../dist/index.html', import.meta.url);
export const FILE_HASH = createHash('sha256').update(readFileSync(FILE)).digest('hex');
/** Screenshots and timings of a run. Git ignores it; CI keeps it. */
export const ARTEFACTS = fileURLToPath(new URL('../shots/', import.meta.url));

/** Waits for a condition with a deadline. */
export async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined, limit = 30_000): Promise<T> {
  const end = Date.now() + limit;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error(`waited ${limit} ms in vain: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

function listens(port: number): Promise<true | undefined> {
  return new Promise((done) => {
    const socket = createConnection(port, '127.0.0.1', () => {
      socket.destroy();
      done(true);
    });
    socket.on('error', () => done(undefined));
  });
}

export function folder(): string {
  return mkdtempSync(join(tmpdir(), 'npubbot-web-'));
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((done) => child.once('exit', done));
  child.kill(signal);
  await exit;
}

/** nostr-relay (PyPI). Its events outlive its process. */
export class RelayProcess {
  private child: ChildProcess | undefined;

  private constructor(
    private readonly program: string,
    private readonly home: string,
    readonly port: number,
  ) {}

  static async start(program: string): Promise<RelayProcess> {
    const relay = new RelayProcess(program, folder(), await freePort());
    const config = [
      'storage:',
      `  sqlalchemy.url: sqlite+aiosqlite:///${join(relay.home, 'nostr.sqlite3')}`,
      '  num_concurrent_reqs: 10',
      '  num_concurrent_adds: 2',
      '  validators: [nostr_relay.validators.is_signed]',
      'gunicorn:',
      `  bind: 127.0.0.1:${relay.port}`,
      '  workers: 1',
      '  loglevel: warning',
      'purple:',
      '  host: 127.0.0.1',
      `  port: ${relay.port}`,
      '  workers: 1',
      '  disable_compression: true',
      'max_event_size: 131072',
      'message_timeout: 1800',
      'subscription_limit: 64',
      '',
    ];
    writeFileSync(join(relay.home, 'relay.yaml'), config.join('\n'));
    await relay.up();
    return relay;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}/`;
  }

  async up(): Promise<void> {
    const log = openSync(join(this.home, 'relay.log'), 'a');
    const args = ['-c', join(this.home, 'relay.yaml'), 'serve'];
    // The relay gets a process group of its own, because its worker is its child and must end with
    // it.
    const options = { cwd: this.home, detached: true, stdio: ['ignore', log, log] as const };
    this.child = spawn(this.program, args, { ...options, stdio: [...options.stdio] });
    await until('the relay listens', () => listens(this.port));
  }

  /** Kills the relay with its worker. */
  async down(): Promise<void> {
    const child = this.child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = new Promise((done) => child.once('exit', done));
    process.kill(-child.pid, 'SIGKILL');
    await exit;
    await until('the relay is gone', async () => ((await listens(this.port)) ? undefined : true));
  }

  async remove(): Promise<void> {
    await this.down();
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** `npubbot serve` with a throw-away identity, on one CPU thread. */
export class BotProcess {
  private constructor(
    private readonly child: ChildProcess,
    private readonly home: string,
    /** The address of the page it serves, with its npub. */
    readonly link: string,
  ) {}

  private isStopped = false;

  get npub(): string {
    return this.link.match(/npub1[0-9a-z]+/)![0];
  }

  static async start(program: string, relay: string, limits: readonly string[] = []): Promise<BotProcess> {
    const home = folder();
    const path = (name: string) => join(home, name);
    const config = [
      '[[relays]]',
      `url = "${relay}"`,
      'roles = ["inbox", "status", "discovery"]',
      '[web]',
      'listen = "127.0.0.1:0"',
      '[limits]',
      'longest_expected_time = "3650 days"',
      'give_up_after = "3650 days"',
      ...limits,
      '',
    ];
    writeFileSync(path('relays.toml'), config.join('\n'));
    writeFileSync(path('passphrase'), 'a test\n');
    const out = openSync(path('out'), 'a');
    const args = ['--config', path('relays.toml'), '--data', path('data'), '--passphrase-file', path('passphrase')];
    execFileSync(program, ['init', ...args], { cwd: home, stdio: ['ignore', out, out] });
    const child = spawn(program, ['serve', ...args, '--device', 'cpu'], {
      cwd: home, detached: true, stdio: ['ignore', out, out],
    });
    const said = () => readFileSync(path('out'), 'utf8');
    try {
      const serves = () => {
        if (child.exitCode !== null) throw new Error('the bot ended');
        return said().includes('searching on') ? said().match(/^http\S+#npub1\S+/m)?.[0] : undefined;
      };
      return new BotProcess(child, home, await until('the bot serves', serves, 60_000));
    } catch (error) {
      child.kill('SIGKILL');
      throw new Error(`${String(error)}; it said:\n${said()}`);
    }
  }

  private said(): string {
    return readFileSync(join(this.home, 'out'), 'utf8');
  }

  /** Number of jobs that the bot has accepted. */
  accepted(): number {
    return this.said().match(/\baccepted\b.*\bjob=/g)?.length ?? 0;
  }

  /** Number of jobs that were cancelled. */
  cancelled(): number {
    return this.said().match(/\bcancelled\b.*\bjob=/g)?.length ?? 0;
  }

  /** Ends the bot, as its operator would. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await ended(this.child, 'SIGTERM');
  }

  /** Signals the bot's processes, which are a group of their own. */
  private signalAll(signal: NodeJS.Signals): void {
    if (this.child.pid !== undefined && this.child.exitCode === null && this.child.signalCode === null) {
      process.kill(-this.child.pid, signal);
    }
  }

  /** Stops the process: the bot neither hears nor does anything until `goOn`. */
  pause(): void {
    this.signalAll('SIGSTOP');
  }

  goOn(): void {
    this.signalAll('SIGCONT');
  }

  async remove(): Promise<void> {
    this.goOn();
    const died = !this.isStopped && (this.child.exitCode !== null || this.child.signalCode !== null);
    if (died) process.stderr.write(`the bot died (${this.child.exitCode ?? this.child.signalCode}):\n${this.said()}\n`);
    await ended(this.child, 'SIGTERM');
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Passes bytes on to a port, each after a delay: a slow network. */
export async function slowTo(port: number, delay: number): Promise<{ port: number; close: () => void }> {
  const server = createServer((near) => {
    const far = createConnection(port, '127.0.0.1');
    for (const [from, to] of [[near, far], [far, near]] as const) {
      from.on('data', (bytes) => setTimeout(() => to.writable && to.write(bytes), delay));
      from.on('close', () => to.destroy());
      from.on('error', () => to.destroy());
    }
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return { port: (server.address() as AddressInfo).port, close: () => void server.close() };
}

export interface Host {
  readonly url: string;
  readonly port: number;
  readonly close: () => void;
}

/** A web server that adds no header of its own, as if the page stood on somebody's site. */
export async function hosted(): Promise<Host> {
  const page = readFileSync(FILE);
  const server = createWebServer((_, reply) => reply.setHeader('content-type', 'text/html; charset=utf-8').end(page));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, port, close: () => void server.close() };
}

/** Takes screenshots of the whole page, numbered in the order in which they are taken. */
export function camera(name: string): (page: Page, step: string) => Promise<void> {
  mkdirSync(ARTEFACTS, { recursive: true });
  let count = 0;
  return async (page, step) => {
    const path = `${ARTEFACTS}${name}-${String(++count).padStart(2, '0')}-${step}.png`;
    await page.screenshot({ path, fullPage: true });
  };
}

/**
 * What axe-core finds wrong on the screen: names for screen readers, contrast, order, language, and
 * the rest of WCAG 2.2 AA that a program can see.
 */
export async function faults(page: Page): Promise<string[]> {
  // Evaluated by the test, not by the page: its policy forbids that.
  await page.evaluate(`(() => { const module = undefined; const define = undefined; ${axe.source} })()`);
  return page.evaluate(async () => {
    const { violations } = await (window as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run();
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  });
}

/** Controls smaller than a thumb: WCAG 2.2 asks for 24 pixels, this page for 40 in height. */
export function tiny(page: Page): Promise<string[]> {
  return page.$$eval('button, a, summary, input, select, textarea', (controls) =>
    controls
      .filter((one) => one.checkVisibility() && !(one instanceof HTMLInputElement && one.type !== 'text' && one.type !== 'password'))
      .filter((one) => one.getBoundingClientRect().height < 40)
      .map((one) => one.id || (one.textContent ?? '').trim()),
  );
}
