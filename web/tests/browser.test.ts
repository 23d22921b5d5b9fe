// The built page by hand, in a real browser, from file:// and with no bot in its address: it
// connects to nothing. Tests that cannot run are named on stderr.

import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { numberToBytesBE } from '@noble/curves/utils.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bech32 } from '@scure/base';
import jsqrModule from 'jsqr';
import { decrypt } from 'nostr-tools/nip49';
import { decode } from 'nostr-tools/nip19';
import type { Browser, BrowserContext, Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { orderOf, WorkFinder } from '../src/work';
import { chromiumPath, launch } from './browsers';
import { faults } from './harness';
import file from './vectors.json';

// A CommonJS package: its one function may be a level deeper.
const jsqr = ((jsqrModule as unknown as { default?: typeof jsqrModule }).default ?? jsqrModule) as unknown as (
  pixels: Uint8ClampedArray,
  width: number,
  height: number,
) => { data: string } | null;
const PAGE = new URL('../dist/index.html', import.meta.url).href;
const SHOTS = fileURLToPath(new URL('../shots/', import.meta.url));
const path = chromiumPath();
const bin = process.env.NPUBBOT_BIN;
const seed = Number(process.env.NPUBBOT_TEST_SEED ?? randomInt(2 ** 40));
process.stderr.write(`browser test: NPUBBOT_TEST_SEED=${seed}\n`);
if (path === undefined) {
  process.stderr.write('NOT RUN: every browser test (no Chromium; name one by NPUBBOT_CHROMIUM)\n');
} else if (!bin) {
  process.stderr.write('NOT RUN: "a real search by npubbot mine --split" (NPUBBOT_BIN does not name the binary)\n');
}

/**
 * Searches as the bot does, with the point alone: tries P + i·G until the npub starts with the
 * pattern.
 */
function mine(pointHex: string, pattern: string): { tweak: string; npub: string } {
  const point = secp256k1.Point.fromHex(pointHex);
  const fingerprint = sha256(point.toBytes(true)).subarray(0, 8);
  const first = BigInt(seed) + 1n;
  let at = point.add(secp256k1.Point.BASE.multiply(first));
  for (let offset = first; ; offset++) {
    const npub = bech32.encode('npub', bech32.toWords(at.toBytes(true).subarray(1)));
    if (npub.startsWith(`npub1${pattern}`)) {
      const payload = Uint8Array.of(1, 0, ...numberToBytesBE(offset, 32), ...fingerprint);
      return { tweak: bech32.encode('ntweak', bech32.toWords(payload)), npub };
    }
    at = at.add(secp256k1.Point.BASE);
  }
}

describe.skipIf(path === undefined)('the page', { timeout: 60_000 }, () => {
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let requests: string[];
  let problems: string[];

  beforeAll(async () => {
    mkdirSync(SHOTS, { recursive: true });
    browser = await launch(path!);
  }, 60_000);
  afterAll(() => browser?.close());

  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 390, height: 844 }, reducedMotion: 'reduce' });
    page = await context.newPage();
    page.setDefaultTimeout(10_000);
    requests = [];
    problems = [];
    context.on('request', (request) => requests.push(request.url()));
    page.on('websocket', (socket) => requests.push(socket.url()));
    page.on('console', (message) => problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(String(error)));
    await page.goto(PAGE);
  });

  afterEach(async () => {
    // In every test: nothing but the page itself was asked for, nothing is stored, nothing
    // complained.
    // A key that is shown is in the session storage until it is forgotten.
    page.removeAllListeners('dialog').once('dialog', (dialog) => void dialog.accept());
    if (await page.locator('#done').isVisible()) await page.locator('#forget').click();
    const stored = await page.evaluate(async () => ({
      local: localStorage.length,
      session: sessionStorage.length,
      cookies: document.cookie,
      databases: (await indexedDB.databases()).length,
      url: location.hash + location.search,
    }));
    const cookies = await context.cookies();
    await context.close();
    // The saved file is the page's own blob.
    expect([...new Set(requests.filter((url) => !url.startsWith('blob:')))]).toEqual([PAGE]);
    expect(stored).toEqual({ local: 0, session: 0, cookies: '', databases: 0, url: '' });
    expect(cookies).toEqual([]);
    expect(problems).toEqual([]);
  });

  const value = async (id: string): Promise<string> =>
    id === 'npub' ? ((await page.locator('#npub').textContent()) ?? '') : page.locator(`#${id}`).inputValue();
  const shot = (name: string) => page.screenshot({ path: `${SHOTS}${name}.png`, fullPage: true });

  /** The text that a QR reader finds in the drawn code. */
  async function readQr(id = 'qr'): Promise<string | undefined> {
    const scale = 4;
    const size = Number((await page.locator(`#${id} svg`).getAttribute('viewBox'))!.split(' ')[2]) * scale;
    const pixels = new Uint8ClampedArray(size * size * 4).fill(255);
    for (const [, x, y] of (await page.locator(`#${id} svg path`).getAttribute('d'))!.matchAll(/M(\d+) (\d+)h1v1h-1z/g)) {
      for (let row = 0; row < scale; row++) {
        for (let column = 0; column < scale; column++) {
          const at = 4 * ((Number(y) * scale + row) * size + Number(x) * scale + column);
          pixels.fill(0, at, at + 3);
        }
      }
    }
    return jsqr(pixels, size, size)?.data;
  }

  async function make(patterns: string): Promise<{ half: string; message: string; point: string }> {
    await page.locator('#patterns').fill(patterns);
    await page.getByRole('button', { name: 'Make my half' }).click();
    const half = await value('half-made');
    expect(await page.locator('#send').isVisible()).toBe(false);
    await page.getByLabel('I have kept my half').check();
    const message = await value('message');
    return { half, message, point: message.split(' ')[1]! };
  }

  async function finish(half: string, tweak: string, prefix?: string): Promise<void> {
    await page.locator('#half').fill(half);
    await page.locator('#tweak').fill(tweak);
    if (prefix !== undefined) await page.locator('#asked-for').fill(prefix);
    await page.getByRole('button', { name: 'Make my key' }).click();
  }

  it('asks before an unsaved key is lost, and a reload brings it back', async () => {
    const { half, point } = await make('q p');
    await finish(half, mine(point, 'q').tweak);
    const npub = await value('npub');
    const questions: string[] = [];
    const answers = [false, false, true];
    page.on('dialog', (dialog) => {
      questions.push(dialog.type());
      void (answers.shift() ? dialog.accept() : dialog.dismiss());
    });
    // Another answer makes no other key, and takes this one away only when its owner agrees.
    await finish(half, mine(point, 'p').tweak);
    await page.locator('#forget').click();
    expect(await value('npub')).toBe(npub);
    await page.reload();
    expect(questions).toEqual(['confirm', 'confirm', 'beforeunload']);
    expect(await value('npub')).toBe(npub);
    await page.getByRole('button', { name: 'Show' }).click();
    await page.locator('#forget').click();
    expect(questions).toHaveLength(3);
    expect(await page.locator('#done').isVisible()).toBe(false);
    expect(await page.locator('#forgotten').textContent()).not.toContain('clipboard');
    await page.reload();
    expect(await value('npub')).toBe('');
  });

  async function refused(problem: RegExp): Promise<void> {
    expect(await page.locator('#finish-error').textContent()).toMatch(problem);
    expect(await page.locator('#done').isVisible()).toBe(false);
    expect(await page.locator('#nsec').inputValue()).toBe('');
  }

  it('makes a request and finishes it', async () => {
    const { half, message, point } = await make('NPUB1cat, dad');
    expect(message).toMatch(/^split 0[23][0-9a-f]{64} cat dad$/);
    expect(await readQr()).toBe(message);
    expect(await page.locator('#rarity').textContent()).toBe('About 1 key in 16 thousand fits.');
    await shot('by-hand-asked');

    await page.getByLabel('Or as a file, under a passphrase').fill('correct horse');
    const saving = page.getByRole('button', { name: 'Save as a file' });
    const [download] = await Promise.all([page.waitForEvent('download', { timeout: 30_000 }), saving.click()]);
    const path = await download.path();
    expect(readFileSync(path, 'latin1')).toMatch(/^age-encryption/);
    expect(readFileSync(path, 'latin1')).not.toContain('nhalf');

    // The answer comes days later, to a page that knows nothing but the file.
    await page.reload();
    expect(await value('half-made')).toBe('');
    expect(await value('patterns')).toBe('');
    const { tweak, npub } = mine(point, 'cat');
    await page.getByText('My half is in a file').click();
    await page.getByLabel('The file', { exact: true }).setInputFiles(path);
    await page.getByLabel('The file’s passphrase').fill('correct horse');
    await page.getByRole('button', { name: 'Open the file' }).click();
    await page.getByText(/^Opened/).waitFor({ timeout: 30_000 });
    expect(await value('half')).toBe(half);
    expect(await value('asked-for')).toBe('cat dad');
    await finish(half, `Found it: ${tweak}`);
    expect(await value('npub')).toBe(npub);
    expect(await page.evaluate(() => /nsec1[a-z0-9]{20}/.test(document.documentElement.outerHTML))).toBe(false);
    expect(await value('nsec')).toBe('');
    await page.getByRole('button', { name: 'Show' }).click();
    expect(await readQr('nsec-qr')).toBe(await value('nsec'));
    const opened = decode((await value('nsec')) as `nsec1${string}`);
    expect(bech32.encode('npub', bech32.toWords(secp256k1.getPublicKey(opened.data).subarray(1)))).toBe(npub);

    await page.getByText('With a password (ncryptsec)').click();
    await page.getByLabel('Password', { exact: true }).fill('correct horse');
    await page.getByRole('button', { name: 'Encrypt' }).click();
    await page.locator('#encrypted').waitFor({ state: 'visible', timeout: 30_000 });
    expect(decrypt(await value('ncryptsec'), 'correct horse')).toEqual(opened.data);
    await shot('by-hand-finished');

    // Another answer takes the key away.
    await page.locator('#tweak').fill('x');
    expect(await page.locator('#done').isVisible()).toBe(false);
    expect(await value('nsec')).toBe('');
  });

  it('takes patterns of every kind, says what they mean, and checks the key', async () => {
    const { half, message, point } = await make('~q, p?p');
    expect(message).toMatch(/^split 0[23][0-9a-f]{64} ~q p\?p$/);
    expect(await page.locator('#rarity').textContent()).toMatch(/~q: .*looks like “q”\. npub1p\?p: .*any character\. About .* fits\./);
    const { tweak, npub } = mine(point, 'q');
    await finish(half, tweak, '=9');
    await refused(/does not fit =9/);
    await finish(half, tweak, '~q p?p');
    expect(await value('npub')).toBe(npub);
  });

  it('does the work that a bot asks for, for this bot and this author', async () => {
    const [bot, author] = ['npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6', 'npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d'];
    const hex = (npub: string) => decode(npub as `npub1${string}`).data as unknown as string;
    const answer = page.locator('#work-answer');
    await page.getByText('A bot asks for work').click();
    const go = page.getByRole('button', { name: 'Do the work' });
    await answer.fill('Please wait.');
    await go.click();
    expect(await page.locator('#work-error').textContent()).toMatch(/no line “npubbot work/);
    await answer.fill(`Nothing was started.\nnpubbot work ${bot} ${author} 12\n`);
    await go.click();
    await page.getByText(/^Done\. Send the line/).waitFor({ timeout: 30_000 });
    const line = (await value('work-line')).split(' ');
    expect(line.slice(0, 2)).toEqual(['work', new Date().toISOString().slice(0, 10)]);
    const order = orderOf({ bot: hex(bot), author: hex(author), bits: 12 });
    expect(new WorkFinder(order).bitsOf(parseInt(line[2]!, 16))).toBeGreaterThanOrEqual(12);
    await shot('by-hand-work');
    // Work that takes long can be stopped.
    await answer.fill(`work ${bot} ${author} 40`);
    await go.click();
    await page.locator('#work-stop').click();
    expect(await page.locator('#work-said').textContent()).toBe('Stopped.');
    expect(await page.locator('#work-done').isVisible()).toBe(false);
  });

  it('says that a half has served, and warns when it makes another key', async () => {
    page.on('dialog', (dialog) => void dialog.accept());
    const { half, point } = await make('q p');
    const served = () => page.locator('#half-served').textContent();
    const [first, second] = [mine(point, 'q').tweak, mine(point, 'p').tweak];
    for (const tweak of [first, `Once more: ${first}`]) {
      await finish(half, tweak, 'q p');
      expect(await served()).toMatch(/^Your half has served. Never use it for another key/);
    }
    await finish(half, second, 'q p');
    expect(await served()).toMatch(/^WARNING: this half has made another key before/);
  });

  it('makes a new half each time', async () => {
    const one = await make('q');
    const other = await make('q');
    expect(other.half).not.toBe(one.half);
    expect(other.point).not.toBe(one.point);
  });

  it('agrees with the vectors', async () => {
    for (const vector of file.vectors.slice(-8, -1)) {
      await finish(vector.half, vector.tweak, '');
      expect(await value('npub')).toBe(vector.npub);
      await page.getByRole('button', { name: 'Show' }).click();
      expect(await value('nsec')).toBe(vector.nsec);
    }
  });

  it('refuses a wrong half, a tweak for another point, a damaged tweak and a wrong prefix', async () => {
    const { half, point } = await make('q');
    const { tweak } = mine(point, 'q');
    await finish(file.bad.half, tweak);
    await refused(/another half/);
    await finish(half, file.bad['other point']);
    await refused(/another half/);
    await finish(half, tweak.slice(0, -1) + (tweak.endsWith('q') ? 'p' : 'q'));
    await refused(/damaged/);
    await finish(half, half);
    await refused(/your half.*never send/);
    await finish(half, tweak, 'zzzz');
    await refused(/does not fit npub1zzzz/);
    await shot('by-hand-refused');
    await finish(half, tweak, 'q');
    expect(await value('npub')).toMatch(/^npub1q/);
  });

  it('explains a letter that cannot occur', async () => {
    await page.locator('#patterns').fill('bob');
    await page.locator('#patterns').press('Enter');
    expect(await page.locator('#patterns-error').textContent()).toMatch(/“b” cannot occur.*808/);
    expect(await page.locator('#made').isVisible()).toBe(false);
    expect(await page.locator('#patterns').getAttribute('aria-invalid')).toBe('true');
  });

  it('can connect to nothing, even if its script wanted to', async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x.png`;
    const blocked = await page.evaluate(async (url) => {
      const violations: string[] = [];
      document.addEventListener('securitypolicyviolation', (event) => {
        violations.push(`${event.effectiveDirective} ${event.blockedURI.split(':')[0]}`);
      });
      const failed = await fetch(url).then(() => false, () => true);
      new WebSocket(url.replace('http', 'ws'));
      const image = new Image();
      const imageFailed = new Promise((done) => image.addEventListener('error', done));
      image.src = url;
      await imageFailed;
      const script = document.createElement('script');
      let refused = '';
      try {
        script.text = 'window.injected = true';
        document.body.append(script);
      } catch (error) {
        refused = String(error);
      }
      return { failed, violations, refused, injected: 'injected' in window };
    }, url);
    server.close();
    expect(connections).toBe(0);
    expect(blocked.failed).toBe(true);
    // The violations of the fetch, the WebSocket and the image.
    expect([...new Set(blocked.violations)].sort()).toEqual(['connect-src http', 'connect-src ws', 'img-src http']);
    expect(blocked.refused).toMatch(/TrustedScript/);
    expect(blocked.injected).toBe(false);
    // The attempts, and the browser's own complaints about them.
    expect(problems.length).toBeGreaterThan(2);
    problems.length = 0;
    requests = requests.filter((asked) => asked !== url);
  });

  it('takes a bot by its npub or link, and refuses what names none', async () => {
    await page.getByLabel('The bot’s npub or link').fill('hello');
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    expect(await page.locator('#bot-error').textContent()).toMatch(/No bot is named/);
    await page.getByLabel('The bot’s npub or link').fill(`nsec1${'q'.repeat(58)}`);
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    expect(await page.locator('#bot-error').textContent()).toMatch(/secret key/);
    expect(page.url()).toBe(PAGE);
  });

  it('says what is wrong with a link, and takes a secret key out of the address', async () => {
    const links = [
      [`#npub1${'q'.repeat(58)}`, /npub is damaged.*Copy the whole link again/],
      ['#hello', /No bot is named here\. Paste/],
      [`#nsec1${'q'.repeat(58)}`, /secret key \(nsec\) in this address.*make a new one/],
    ] as const;
    for (const [hash, sentence] of links) {
      await page.goto(`${PAGE}${hash}`);
      await page.getByText(sentence).waitFor();
      expect(await page.getByLabel('The bot’s npub or link').isVisible()).toBe(true);
      await shot(`link${hash.slice(0, 5)}`);
    }
    expect(page.url()).toBe(PAGE);
    requests = requests.map((url) => url.split('#')[0]!);
  });

  it('looks right on a wide screen, in the dark', async () => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 1100, height: 800 });
    await make('m0ctane');
    await shot('by-hand-dark');
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    expect(await overflow()).toBe(false);
    await page.setViewportSize({ width: 320, height: 600 });
    expect(await overflow()).toBe(false);
    expect(await faults(page)).toEqual([]);
  });

  it.skipIf(!bin)('finishes a real search by npubbot mine --split', async () => {
    const { half, point } = await make('cat');
    const printed = execFileSync(bin!, ['mine', '--split', point, 'cat'], { encoding: 'utf8', timeout: 50_000 });
    await finish(half, printed.match(/ntweak1[a-z0-9]+/)![0]);
    expect(await value('npub')).toMatch(/^npub1cat/);
  });
});
