// The stage of the tests that ask a real bot: relay, bot, and a browser of a phone's size that
// notes every connection and complaint.

import { secp256k1 } from '@noble/curves/secp256k1.js';
import { nip19 } from 'nostr-tools';
import type { Browser, BrowserContext, Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { chromiumPath, launch } from './browsers';
import { BotProcess, hosted, RelayProcess, until, type Host } from './harness';

const browserPath = chromiumPath();
export const bin = process.env.NPUBBOT_BIN;
const relayBin = process.env.NPUBBOT_RELAY_BIN;

/** The programs that are missing and without which no real bot can be asked. */
export const missing = [
  ...(browserPath === undefined ? ['a Chromium (NPUBBOT_CHROMIUM)'] : []),
  ...(bin ? [] : ['the bot (NPUBBOT_BIN)']),
  ...(relayBin ? [] : ['a relay (NPUBBOT_RELAY_BIN)']),
];

export function sayWhatIsMissing(tests: string): void {
  if (missing.length > 0) process.stderr.write(`NOT RUN: ${tests}; missing: ${missing.join(', ')}\n`);
}

/** The npub of an nsec, by another way than the page's. */
export function npubOf(nsec: string): string {
  const { data } = nip19.decode(nsec as `nsec1${string}`);
  return nip19.npubEncode(Buffer.from(secp256k1.getPublicKey(data, true).subarray(1)).toString('hex'));
}

export class Stage {
  relay!: RelayProcess;
  bot!: BotProcess;
  browser!: Browser;
  context!: BrowserContext;
  page!: Page;
  /** Address of the server that the page comes from in this test. */
  origin!: string;
  /** Complaints of browser and page in this test. A test removes those that it provoked. */
  problems: string[] = [];
  private asked: string[] = [];

  /** The page's address, with the bot's name. */
  link!: string;
  private host: Host | undefined;

  constructor(private readonly limits: readonly string[]) {}

  async start(): Promise<void> {
    this.relay = await RelayProcess.start(relayBin!);
    this.bot = await BotProcess.start(bin!, this.relay.url, this.limits);
    this.link = this.bot.link;
    if (process.env.NPUBBOT_WEB_DIST) {
      this.host = await hosted();
      this.link = this.host.url + new URL(this.bot.link).hash;
    }
    this.browser = await launch(browserPath!);
  }

  async end(): Promise<void> {
    await this.browser?.close();
    this.host?.close();
    await this.bot?.remove();
    await this.relay?.remove();
  }

  /** Opens a fresh browser context with one tab. */
  async open(locale = 'en-US'): Promise<void> {
    const viewport = { width: 390, height: 844 };
    this.context = await this.browser.newContext({ viewport, isMobile: true, hasTouch: true, locale });
    this.origin = new URL('/', this.link).href;
    this.asked = [];
    this.problems = [];
    await this.newTab();
  }

  async newTab(): Promise<void> {
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(15_000);
    this.page.on('request', (request) => this.asked.push(request.url()));
    this.page.on('websocket', (socket) => this.asked.push(socket.url()));
    this.page.on('console', (message) => this.problems.push(message.text()));
    this.page.on('pageerror', (error) => this.problems.push(String(error)));
  }

  /**
   * Ends a test, and checks that only the page itself and relays on loopback were asked for and
   * nothing complained.
   */
  async close(): Promise<void> {
    await this.context.close();
    this.bot.goOn();
    const relays = this.asked.filter((url) => url.startsWith('ws'));
    const others = this.asked.filter((url) => !url.startsWith('ws') && !/^(blob|data):/.test(url));
    expect([...new Set(others.map((url) => new URL('/', url).href))]).toEqual([this.origin]);
    expect(relays.filter((url) => !url.startsWith('ws://127.0.0.1:'))).toEqual([]);
    expect(this.problems).toEqual([]);
  }

  /** Opens the page, and waits until it has found the bot. */
  async arrive(): Promise<void> {
    await this.page.goto(this.link);
    await this.page.getByText(/npub1\w{9}…/).waitFor();
  }

  async ask(prefix: string): Promise<void> {
    await this.page.locator('#prefix').fill(prefix);
    await this.page.locator('#ask-button').click();
  }

  /** Asks a bot that sleeps until `goOn`: the request waits at the relay. */
  async askAsleep(prefix: string): Promise<void> {
    this.bot.pause();
    await this.ask(prefix);
    await this.says('#state', /Waiting for the bot/);
  }

  async says(selector: string, text: RegExp): Promise<void> {
    const look = async () => (text.test((await this.page.textContent(selector)) ?? '') ? true : undefined);
    await until(`${selector} says ${text}`, look, 15_000);
  }

  async keyIsThere(): Promise<void> {
    await this.page.locator('#done-title').waitFor({ timeout: 60_000 });
  }

  async npub(): Promise<string> {
    return (await this.page.textContent('#npub')) ?? '';
  }

  async shownNsec(): Promise<string> {
    await this.page.getByRole('button', { name: 'Show' }).click();
    return this.page.getByRole('textbox', { name: 'Secret: your nsec' }).inputValue();
  }

  /**
   * Whether a secret key stands anywhere in the document, shown or not. The script has the word,
   * but no key.
   */
  holdsNsec(): Promise<boolean> {
    return this.page.evaluate(() => {
      const fields = [...document.querySelectorAll('input, textarea')] as HTMLInputElement[];
      const values = fields.map((field) => field.value).join(' ');
      return /nsec1[a-z0-9]{20}/.test(document.documentElement.outerHTML + values);
    });
  }
}

/**
 * A stage for the tests of one file, with a fresh browser for each. `limits`: further lines of the
 * bot's configuration.
 */
export function stage(limits: readonly string[] = []): Stage {
  const set = new Stage(limits);
  beforeAll(() => set.start(), 90_000);
  beforeEach(() => set.open());
  afterEach(() => set.close());
  afterAll(() => set.end());
  return set;
}
