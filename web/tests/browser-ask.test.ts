// The page asks a real `npubbot serve` through a real relay, in a real browser of a phone's size.

import { execFileSync } from 'node:child_process';
import { writeFileSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { nip19 } from 'nostr-tools';
import { decrypt } from 'nostr-tools/nip49';
import type { Browser, BrowserContext, Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decrypted } from '../src/keep';
import { pointHex } from '../src/key';
import { fromLines } from '../src/request';
import { chromiumPath, launch } from './chromium';
import { ARTEFACTS, BotProcess, camera, faint, FILE, FILE_HASH, folder, RelayProcess, slowTo, tiny, unnamed, until } from './harness';

const browserPath = chromiumPath();
const bin = process.env.NPUBBOT_BIN;
const relayBin = process.env.NPUBBOT_RELAY_BIN;
const missing = [
  ...(browserPath === undefined ? ['a Chromium (NPUBBOT_CHROMIUM)'] : []),
  ...(bin ? [] : ['the bot (NPUBBOT_BIN)']),
  ...(relayBin ? [] : ['a relay (NPUBBOT_RELAY_BIN)']),
];
if (missing.length > 0) process.stderr.write(`NOT RUN: asking a real bot in a browser; missing: ${missing.join(', ')}\n`);

/** The npub of an nsec, by another way than the page's. */
function npubOf(nsec: string): string {
  const { data } = nip19.decode(nsec as `nsec1${string}`);
  return nip19.npubEncode(Buffer.from(secp256k1.getPublicKey(data, true).subarray(1)).toString('hex'));
}

describe.skipIf(missing.length > 0)('asking the bot', { timeout: 90_000 }, () => {
  let relay: RelayProcess;
  let bot: BotProcess;
  let host: Server;
  let origin: string;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let asked: string[];
  let problems: string[];

  beforeAll(async () => {
    const page = readFileSync(FILE);
    host = createServer((_, reply) => reply.setHeader('content-type', 'text/html; charset=utf-8').end(page));
    await new Promise<void>((done) => host.listen(0, '127.0.0.1', done));
    origin = `http://127.0.0.1:${(host.address() as AddressInfo).port}/`;
    relay = await RelayProcess.start(relayBin!);
    bot = await BotProcess.start(bin!, relay.url);
    browser = await launch(browserPath!);
  }, 90_000);

  afterAll(async () => {
    await browser?.close();
    await bot?.remove();
    await relay?.remove();
    host?.close();
  });

  const link = (url = relay.url) => `#${bot.npub}&relay=${url}`;

  function watch(page: Page): void {
    page.setDefaultTimeout(15_000);
    page.on('request', (request) => asked.push(request.url()));
    page.on('websocket', (socket) => asked.push(socket.url()));
    page.on('console', (message) => problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(String(error)));
  }

  async function open(options: Parameters<Browser['newContext']>[0] = {}): Promise<void> {
    context = await browser.newContext({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, ...options });
    page = await context.newPage();
    asked = [];
    problems = [];
    watch(page);
  }

  beforeEach(() => open());

  afterEach(async () => {
    await context.close();
    bot.goOn();
    const relays = new Set(asked.filter((url) => url.startsWith('ws')));
    const others = asked.filter((url) => !url.startsWith('ws') && !/^(blob|data):/.test(url));
    expect([...new Set(others.map((url) => new URL(url).origin))]).toEqual([origin.slice(0, -1)]);
    expect([...relays].filter((url) => !url.startsWith('ws://127.0.0.1:'))).toEqual([]);
    expect(problems).toEqual([]);
  });

  /** Opens the page, and waits until it has found the bot. */
  async function arrive(url?: string): Promise<void> {
    await page.goto(origin + link(url));
    await page.getByText(/You ask npubbot/).waitFor();
  }

  const keyIsThere = () => page.getByRole('heading', { name: 'Your key is here' }).waitFor({ timeout: 60_000 });
  const npub = () => page.getByRole('textbox', { name: 'Public: your npub' }).inputValue();

  /** Whether a secret key stands anywhere in the document, shown or not. The script has the word, but no key. */
  const holdsNsec = () => page.evaluate(() => {
    const values = [...document.querySelectorAll('input, textarea')].map((field) => (field as HTMLInputElement).value);
    return /nsec1[a-z0-9]{20}/.test(document.documentElement.outerHTML + values.join(' '));
  });

  async function shownNsec(): Promise<string> {
    await page.getByRole('button', { name: 'Show' }).click();
    return page.getByRole('textbox', { name: 'Secret: your nsec' }).inputValue();
  }

  it('takes a person with a phone and nothing else to a key in six taps and one paste', async () => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
    const shot = camera('first-ten-minutes');
    const began = Date.now();
    const times: [string, number][] = [];
    let taps = 0;
    const tap = async (what: string, target: ReturnType<Page['getByRole']>) => {
      await target.tap();
      taps++;
      times.push([what, Date.now() - began]);
    };

    await page.goto(origin + link());
    await page.getByText(/You ask npubbot/).waitFor();
    times.push(['the page has found the bot', Date.now() - began]);
    await shot(page, 'opened');
    await tap('tap: the field', page.getByRole('textbox', { name: 'Your npub starts with' }));
    await page.keyboard.type('hank', { delay: 20 });
    await expectText('#prefix-odds', /About 1 key in 1 million fits\. The bot takes /);
    await shot(page, 'typed');
    await tap('tap: Find my key', page.getByRole('button', { name: 'Find my key' }));
    await keyIsThere();
    times.push(['the key is there', Date.now() - began]);
    await shot(page, 'key');
    expect(await npub()).toMatch(/^npub1hank/);
    await tap('tap: Copy your nsec', page.getByRole('button', { name: 'Copy your nsec' }));
    await page.getByText('Copied.').waitFor();
    // The client's log-in field, and the one paste.
    const client = await context.newPage();
    await client.setContent('<label>Log in <input id="login"></label>');
    await client.getByLabel('Log in').focus();
    await client.keyboard.press('Control+V');
    expect(npubOf(await client.inputValue('#login'))).toBe(await npub());
    times.push(['paste: the nsec in a client', Date.now() - began]);
    await client.close();
    await tap('tap: I have saved my key', page.getByRole('button', { name: /I have saved my key/ }));
    await page.getByText(/Forgotten/).waitFor();
    await shot(page, 'forgotten');
    expect(await holdsNsec()).toBe(false);
    expect(taps).toBeLessThanOrEqual(6);
    const lines = times.map(([what, time]) => `${(time / 1000).toFixed(1).padStart(6)} s  ${what}`);
    writeFileSync(`${ARTEFACTS}first-ten-minutes.txt`, `${lines.join('\n')}\n${taps} taps, 1 paste\n`);
    process.stderr.write(`first ten minutes:\n${lines.join('\n')}\n`);
  });

  async function expectText(selector: string, text: RegExp, limit = 15_000): Promise<void> {
    await until(`${selector} says ${text}`, async () => (text.test((await page.textContent(selector)) ?? '') ? true : undefined), limit);
  }

  it('hands the key over as nsec, QR code and ncryptsec, and saves it in a password manager', async () => {
    const shot = camera('hand-over');
    // The browser's own dialog cannot be pressed by a test; what it is asked for can be seen.
    await page.addInitScript(() => {
      Object.defineProperty(navigator, 'credentials', {
        value: { store: async (credential: unknown) => Object.assign(window, { saved: credential }) },
      });
    });
    await arrive();
    await page.getByLabel('Your npub starts with').fill('m0c');
    await page.getByRole('button', { name: 'Find my key' }).click();
    await keyIsThere();
    expect(await holdsNsec()).toBe(false);
    const nsec = await shownNsec();
    expect(npubOf(nsec)).toBe(await npub());
    expect(await page.getByRole('img', { name: 'QR code of your nsec' }).isVisible()).toBe(true);
    await shot(page, 'shown');
    await page.getByRole('button', { name: 'Save in the password manager' }).click();
    const saved = await page.evaluate(() => {
      const { id, password } = (window as unknown as { saved: { id: string; password: string } }).saved;
      return { id, password };
    });
    expect(saved).toEqual({ id: await npub(), password: nsec });
    await page.getByText('With a password (ncryptsec)').click();
    await page.getByLabel('Password', { exact: true }).fill('correct horse');
    await page.getByRole('button', { name: 'Encrypt' }).click();
    const locked = page.getByRole('textbox', { name: 'Your ncryptsec' });
    await locked.waitFor({ timeout: 30_000 });
    expect(nip19.nsecEncode(decrypt(await locked.inputValue(), 'correct horse'))).toBe(nsec);
    await shot(page, 'ncryptsec');
    expect(await page.getByRole('link', { name: 'Primal' }).getAttribute('rel')).toBe('noopener noreferrer');
    expect(await page.getByRole('link', { name: 'The Nostr app' }).getAttribute('href')).toBe(`nostr:${await npub()}`);
  });

  it('works with a keyboard alone', async () => {
    const shot = camera('keyboard');
    await arrive();
    const focused = () => page.evaluate(() => {
      const at = document.activeElement as HTMLElement;
      return at.id || at.tagName;
    });
    const tabTo = async (id: string) => {
      for (let presses = 0; presses < 30 && (await focused()) !== id; presses++) await page.keyboard.press('Tab');
      expect(await focused()).toBe(id);
    };
    await tabTo('prefix');
    await page.keyboard.type('bob');
    await expectText('#prefix-error', /“b” cannot occur.*“808” or “6q6”/);
    await shot(page, 'look-alikes');
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Use 808');
    await page.keyboard.press('Enter');
    expect(await page.inputValue('#prefix')).toBe('808');
    expect(await focused()).toBe('ask-button');
    await page.keyboard.press('Enter');
    await keyIsThere();
    expect(await focused()).toBe('done-title');
    await shot(page, 'key');
    await tabTo('show-nsec');
    await page.keyboard.press('Enter');
    expect(npubOf(await page.inputValue('#nsec'))).toMatch(/^npub1808/);
    await tabTo('forget');
    await page.keyboard.press('Enter');
    await page.getByText(/Forgotten/).waitFor();
  });

  it('has names for screen readers, contrast and room for thumbs on every screen, in light and dark', async () => {
    const shot = camera('dark');
    const check = async (screen: string) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect({ screen, colorScheme, unnamed: await unnamed(page), faint: await faint(page), tiny: await tiny(page) })
          .toEqual({ screen, colorScheme, unnamed: [], faint: [], tiny: [] });
      }
      expect(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)).toBe(false);
      await shot(page, screen);
    };
    await arrive();
    await page.getByLabel('Your npub starts with').fill('nico');
    await check('wrong letter');
    await page.getByRole('button', { name: 'Use nlc0' }).click();
    bot.pause();
    await page.getByLabel('Your npub starts with').fill('nlc0m');
    await page.getByRole('button', { name: 'Find my key' }).click();
    await page.getByText(/Waiting for the bot/).waitFor();
    await expectText('#step-sent', /done/);
    await check('waiting');
    bot.goOn();
    await keyIsThere();
    await page.getByRole('button', { name: 'Show' }).click();
    await check('key');
  });

  it('shows what the bot says where it refuses', async () => {
    await arrive();
    await page.getByLabel('Your npub starts with').fill('m0ctanem0ctane');
    await expectText('#prefix-odds', /years/);
    await page.getByRole('button', { name: 'Find my key' }).click();
    const words = page.locator('#bot-words');
    await words.waitFor();
    expect(await words.textContent()).toMatch(/characters/);
    await camera('refused')(page, 'words');
    expect(await page.locator('#step-accepted').textContent()).not.toMatch(/done/);
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Ask for something else' }).click();
    expect(await page.getByLabel('Your npub starts with').inputValue()).toBe('m0ctanem0ctane');
    await page.getByLabel('Your npub starts with').fill('m0c');
    await page.getByRole('button', { name: 'Find my key' }).click();
    await keyIsThere();
    expect(await npub()).toMatch(/^npub1m0c/);
  });

  it('stops a search', async () => {
    await arrive();
    await page.getByLabel('Your npub starts with').fill('m0ctane7');
    await page.getByRole('button', { name: 'Find my key' }).click();
    await page.getByText(/the bot is searching/).waitFor();
    await camera('stop')(page, 'searching');
    // Closing the tab now would lose the half: the browser asks first.
    const asking = page.waitForEvent('dialog');
    void page.close({ runBeforeUnload: true });
    const dialog = await asking;
    expect(dialog.type()).toBe('beforeunload');
    await dialog.dismiss();
    await page.getByRole('button', { name: 'Stop the search' }).click();
    await page.getByText(/^Stopped/).waitFor();
    expect(await page.locator('#bot-words').isVisible()).toBe(true);
    await camera('stopped')(page, 'stopped');
  });

  it('goes on in a new tab, from what the browser keeps encrypted', async () => {
    const shot = camera('reopened');
    await arrive();
    bot.pause();
    await page.getByLabel('Your npub starts with').fill('m0ct');
    await page.getByRole('button', { name: 'Find my key' }).click();
    await expectText('#step-sent', /done/);
    await page.getByLabel('A passphrase you will remember').fill('correct horse');
    await page.getByRole('button', { name: 'Keep in this browser' }).click();
    await page.getByText(/Kept in this browser/).waitFor({ timeout: 30_000 });
    await shot(page, 'kept');
    const stored = await page.evaluate(() => JSON.stringify(localStorage));
    expect(Buffer.from(Object.values(JSON.parse(stored) as Record<string, string>)[0]!, 'base64').toString('latin1'))
      .toMatch(/^age-encryption\.org\/v1\n-> scrypt /);
    expect(stored).not.toMatch(/nhalf|nsec|m0ct/);
    await page.close();
    bot.goOn();

    page = await context.newPage();
    watch(page);
    await page.goto(origin + link());
    await shot(page, 'list');
    await page.getByLabel('Its passphrase').fill('wrong');
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByText('Wrong passphrase. Try again.').waitFor({ timeout: 30_000 });
    await page.getByLabel('Its passphrase').fill('correct horse');
    await page.getByRole('button', { name: 'Go on' }).click();
    await keyIsThere();
    expect(await npub()).toMatch(/^npub1m0ct/);
    expect(npubOf(await shownNsec())).toBe(await npub());
    expect(await page.evaluate(() => localStorage.length)).toBe(1);
    await page.getByRole('button', { name: /I have saved my key/ }).click();
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
  });

  it('goes on in another browser from a saved file, which npubbot combine reads too', async () => {
    await arrive();
    bot.pause();
    await page.getByLabel('Your npub starts with').fill('cat');
    await page.getByRole('button', { name: 'Find my key' }).click();
    await expectText('#step-sent', /done/);
    await page.getByLabel('A passphrase you will remember').fill('correct horse');
    const [download] = await Promise.all([
      page.waitForEvent('download', { timeout: 30_000 }),
      page.getByRole('button', { name: 'Save as a file' }).click(),
    ]);
    const place = folder();
    const path = join(place, 'half.age');
    await download.saveAs(path);
    await context.close();
    bot.goOn();

    await open();
    await arrive();
    await page.getByRole('button', { name: 'Open a request you saved as a file' }).click();
    await camera('file')(page, 'open');
    await page.getByLabel('A saved file').setInputFiles(path);
    await page.getByLabel('Its passphrase').fill('correct horse');
    await page.getByRole('button', { name: 'Go on' }).click();
    await keyIsThere();
    const nsec = await shownNsec();
    expect(npubOf(nsec)).toMatch(/^npub1cat/);

    // The command line makes the same kind of key of the same file: with a tweak of its own search.
    writeFileSync(join(place, 'pass'), 'correct horse\n');
    const lines = await decrypted(new Uint8Array(readFileSync(path)), 'correct horse');
    const point = pointHex(fromLines(lines).half);
    const mined = execFileSync(bin!, ['mine', '--split', point, 'cat', '--device', 'cpu'], { encoding: 'utf8' });
    const args = ['combine', mined.match(/ntweak1[a-z0-9]+/)![0], '--half', path, '--passphrase-file', join(place, 'pass')];
    expect(execFileSync(bin!, args, { encoding: 'utf8' })).toMatch(/npub1cat/);
  });

  it('works through a slow network', async () => {
    const slow = await slowTo(relay.port, 700);
    await page.goto(`${origin}${link(`ws://127.0.0.1:${slow.port}/`)}`);
    await camera('slow')(page, 'looking');
    await page.getByText(/You ask npubbot/).waitFor();
    await page.getByLabel('Your npub starts with').fill('m0c');
    await page.getByRole('button', { name: 'Find my key' }).click();
    await keyIsThere();
    expect(await npub()).toMatch(/^npub1m0c/);
    slow.close();
  });

  it('connects to nobody else once it asks, even if its script wanted to', async () => {
    await arrive();
    bot.pause();
    await page.getByLabel('Your npub starts with').fill('m0c');
    await page.getByRole('button', { name: 'Find my key' }).click();
    await expectText('#step-sent', /done/);
    const other = await slowTo(relay.port, 0);
    const blocked = await page.evaluate(async (url) => {
      const seen = new Promise<string>((done) =>
        document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective)));
      new WebSocket(url);
      return seen;
    }, `ws://127.0.0.1:${other.port}/`);
    other.close();
    expect(blocked).toBe('connect-src');
    expect(await page.textContent('#connects')).toContain(`127.0.0.1:${relay.port}, and to nothing else`);
    problems.length = 0;
  });

  it('shows its own SHA-256 and can be installed', async () => {
    await arrive();
    expect(await page.textContent('#own-hash')).toBe(FILE_HASH);
    const session = await context.newCDPSession(page);
    const { installabilityErrors } = await session.send('Page.getInstallabilityErrors');
    const manifest = await session.send('Page.getAppManifest');
    // A browser without a window of its own refuses all; that is no fault of the page.
    expect(installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito')).toEqual([]);
    expect(manifest.errors).toEqual([]);
    expect(JSON.parse(manifest.data ?? '{}')).toMatchObject({ start_url: origin + link(), display: 'standalone' });
    await page.getByText('About this page').click();
    await camera('about')(page, 'open');
  });

  it('survives the death of its relay', async () => {
    const shot = camera('relay-gone');
    await arrive();
    bot.pause();
    await page.getByLabel('Your npub starts with').fill('m0ct');
    await page.getByRole('button', { name: 'Find my key' }).click();
    await expectText('#step-sent', /done/);
    await relay.down();
    await page.getByText(/No relay can be reached now/).waitFor();
    await shot(page, 'gone');
    // The browser's own words about refused connections.
    problems.length = 0;
    await relay.up();
    bot.goOn();
    await keyIsThere();
    problems = problems.filter((problem) => !/ERR_CONNECTION_REFUSED/.test(problem));
    expect(await npub()).toMatch(/^npub1m0ct/);
    await shot(page, 'key');
  });
});
