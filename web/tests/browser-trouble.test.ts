// The page asks a real `npubbot serve` where something goes wrong: the tab is closed, the network
// is slow, the relay dies, somebody means ill. Also tests how the page is served.

import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nip19, verifyEvent, type NostrEvent } from 'nostr-tools';
import { describe, expect, it } from 'vitest';
import { decrypted } from '../src/keep';
import { pointHex } from '../src/key';
import { fromLines } from '../src/request';
import { camera, FILE_HASH, folder, hosted, slowTo, until } from './harness';
import { bin, missing, npubOf, sayWhatIsMissing, stage } from './stage';

sayWhatIsMissing('asking a real bot through trouble');

describe.skipIf(missing.length > 0)('asking the bot through trouble', { timeout: 90_000 }, () => {
  const at = stage();

  it('goes on in a new tab, from what the browser keeps encrypted', async () => {
    const shot = camera('reopened');
    await at.arrive();
    await at.askAsleep('m0ct');
    await at.page.getByLabel('A passphrase you will remember').fill('correct horse');
    await at.page.getByRole('button', { name: 'Keep in this browser' }).click();
    await at.page.getByText(/Kept in this browser/).waitFor({ timeout: 30_000 });
    await shot(at.page, 'kept');
    const stored = await at.page.evaluate(() => JSON.stringify(localStorage));
    expect(Buffer.from(Object.values(JSON.parse(stored) as Record<string, string>)[0]!, 'base64').toString('latin1'))
      .toMatch(/^age-encryption\.org\/v1\n-> scrypt /);
    expect(stored).not.toMatch(/nhalf|nsec|m0ct/);
    await at.page.close();
    at.bot.goOn();

    await at.newTab();
    await at.page.goto(at.link);
    await shot(at.page, 'list');
    await at.page.getByLabel('Its passphrase').fill('wrong');
    await at.page.getByRole('button', { name: 'Go on' }).click();
    await at.page.getByText('Wrong passphrase. Try again.').waitFor({ timeout: 30_000 });
    await at.page.getByLabel('Its passphrase').fill('correct horse');
    await at.page.getByRole('button', { name: 'Go on' }).click();
    await at.keyIsThere();
    expect(await at.npub()).toMatch(/^npub1m0ct/);
    expect(npubOf(await at.shownNsec())).toBe(await at.npub());
    expect(await at.page.evaluate(() => localStorage.length)).toBe(1);
    await at.page.getByRole('button', { name: /I have saved my key/ }).click();
    expect(await at.page.evaluate(() => localStorage.length)).toBe(0);
  });

  it('remembers the answer that a kept request got', async () => {
    await at.arrive();
    await at.ask('m0ctane9');
    await at.page.getByLabel('A passphrase you will remember').fill('correct horse');
    await at.page.getByRole('button', { name: 'Keep in this browser' }).click();
    await at.page.getByText(/Kept in this browser/).waitFor({ timeout: 30_000 });
    // As if the bot had answered, and now sends another answer.
    const name = await at.page.evaluate(() => Object.keys(localStorage)[0]!);
    const reopen = async () => {
      await at.page.reload();
      await at.page.getByLabel('Its passphrase').fill('correct horse');
      await at.page.getByRole('button', { name: 'Go on' }).click();
    };
    const { vectors } = JSON.parse(readFileSync(new URL('vectors.json', import.meta.url), 'utf8')) as { vectors: { tweak: string }[] };
    await at.page.evaluate(([name, tweak]) => localStorage.setItem(name!, `${localStorage.getItem(name!)} ${tweak}`), [name, vectors[0]!.tweak]);
    await reopen();
    await at.says('#waiting-problem', /made for another half/);
    await at.page.evaluate((name) => localStorage.removeItem(name), name);
    await at.page.getByRole('button', { name: 'Stop the search' }).click();
    await at.page.getByText(/^Stopped/).waitFor();
  });

  it('goes on in another browser from a saved file, which npubbot combine reads too', async () => {
    await at.arrive();
    await at.askAsleep('cat');
    await at.page.getByLabel('A passphrase you will remember').fill('correct horse');
    const [download] = await Promise.all([
      at.page.waitForEvent('download', { timeout: 30_000 }),
      at.page.getByRole('button', { name: 'Save as a file' }).click(),
    ]);
    const place = folder();
    const path = join(place, 'half.age');
    await download.saveAs(path);
    await at.context.close();
    at.bot.goOn();

    await at.open();
    await at.arrive();
    await at.page.getByRole('button', { name: 'Open a request you saved as a file' }).click();
    await camera('file')(at.page, 'open');
    await at.page.getByLabel('A saved file').setInputFiles(path);
    await at.page.getByLabel('Its passphrase').fill('correct horse');
    await at.page.getByRole('button', { name: 'Go on' }).click();
    await at.keyIsThere();
    const nsec = await at.shownNsec();
    expect(npubOf(nsec)).toMatch(/^npub1cat/);

    // The command line makes a key from the same file, with a tweak from its own search.
    writeFileSync(join(place, 'pass'), 'correct horse\n');
    const lines = await decrypted(new Uint8Array(readFileSync(path)), 'correct horse');
    const point = pointHex(fromLines(lines).half);
    const mined = execFileSync(bin!, ['mine', '--split', point, 'cat', '--device', 'cpu'], { encoding: 'utf8' });
    const args = ['combine', mined.match(/ntweak1[a-z0-9]+/)![0], '--half', path, '--passphrase-file', join(place, 'pass')];
    expect(execFileSync(bin!, args, { encoding: 'utf8' })).toMatch(/npub1cat/);
    rmSync(place, { recursive: true });
  });

  it('asks before an unsaved key is lost, and a reload brings it back', async () => {
    const shot = camera('unsaved');
    await at.page.goto(new URL('/page.sha256', at.link).href);
    await at.arrive();
    await at.ask('m0c');
    await at.keyIsThere();
    const npub = await at.npub();
    /** Does what would lose the key, answers the question about it, and returns the question's kind. */
    const asked = async (act: () => Promise<unknown>, answer: 'accept' | 'dismiss') => {
      const [kind] = await Promise.all([
        new Promise<string>((done) => at.page.once('dialog', async (dialog) => {
          await dialog[answer]();
          done(dialog.type());
        })),
        act(),
      ]);
      return kind;
    };
    const reload = () => at.page.evaluate(() => void setTimeout(() => location.reload()));
    const back = () => at.page.evaluate(() => void setTimeout(() => history.back()));
    const address = at.page.url();
    const changeLink = () => at.page.evaluate(() => void (location.hash += '&other'));
    const forget = () => at.page.getByRole('button', { name: /forget everything/ }).click();
    for (const [way, kind] of [[reload, 'beforeunload'], [back, 'beforeunload'], [changeLink, 'confirm'], [forget, 'confirm']] as const) {
      expect(await asked(way, 'dismiss'), way.name).toBe(kind);
      expect(await at.npub(), way.name).toBe(npub);
      expect(at.page.url(), way.name).toBe(address);
    }
    // Closing the tab asks too.
    expect(await asked(() => at.page.close({ runBeforeUnload: true }), 'dismiss')).toBe('beforeunload');

    await Promise.all([at.page.waitForEvent('load'), asked(reload, 'accept')]);
    await at.keyIsThere();
    expect(await at.npub()).toBe(npub);
    expect(await at.page.getByRole('button', { name: 'Find my key' }).isVisible()).toBe(false);
    await shot(at.page, 'reloaded');
    // Left by "back" all the same (the link that was not followed is an entry too), and come forward.
    const twoBack = () => at.page.evaluate(() => void setTimeout(() => history.go(-2)));
    await Promise.all([at.page.waitForURL(/sha256$/), asked(twoBack, 'accept')]);
    await at.page.goForward();
    await at.keyIsThere();
    await Promise.all([at.page.waitForEvent('load'), asked(changeLink, 'accept')]);
    await at.keyIsThere();
    expect(await at.npub()).toBe(npub);

    expect(npubOf(await at.shownNsec())).toBe(npub);
    at.page.once('dialog', (dialog) => expect.unreachable(dialog.message()));
    await at.page.reload();
    await at.keyIsThere();
    await at.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: at.origin });
    await at.page.getByRole('button', { name: 'Copy your nsec' }).click();
    await at.page.getByText('Copied.').waitFor();
    await forget();
    await at.page.getByText(/^Forgotten.*clipboard still has the key/).waitFor();
    await shot(at.page, 'forgotten');
    expect(await at.page.evaluate(() => sessionStorage.length)).toBe(0);
    await at.page.reload();
    await at.page.getByRole('button', { name: 'Find my key' }).waitFor();
    expect(await at.holdsNsec()).toBe(false);
  });

  it('works through a slow network', async () => {
    // The page comes from another server. The bot's own allows connections to its relays only, and
    // the slow way to one is none of them.
    const host = await hosted();
    const [slowHost, slow] = await Promise.all([slowTo(host.port, 700), slowTo(at.relay.port, 700)]);
    at.origin = `http://127.0.0.1:${slowHost.port}/`;
    await at.page.goto(`${at.origin}#${at.bot.npub}&relay=ws://127.0.0.1:${slow.port}/`);
    await camera('slow')(at.page, 'looking');
    await at.page.getByText(/You ask npubbot/).waitFor();
    await at.ask('m0c');
    await at.keyIsThere();
    expect(await at.npub()).toMatch(/^npub1m0c/);
    for (const one of [slow, slowHost, host]) one.close();
  });

  it('authenticates with its one-time identity where a relay demands that', async () => {
    // The real relay behind a gate that wants NIP-42 for gift wraps, read or written.
    const signers = new Set<string>();
    await at.page.routeWebSocket(at.relay.url, (near) => {
      const far = near.connectToServer();
      let open = false;
      // As some relays do: the challenge comes with the first refusal, not before.
      const refuse = (answer: unknown[]) => {
        near.send(JSON.stringify(['AUTH', 'a challenge']));
        near.send(JSON.stringify([...answer, 'auth-required: who are you?']));
      };
      near.onMessage((text) => {
        const [kind, id, filter] = JSON.parse(String(text)) as [string, NostrEvent & string, { kinds?: number[] }];
        if (kind === 'AUTH') {
          const tags = Object.fromEntries(id.tags as [string, string][]);
          open = verifyEvent(id) && id.kind === 22242 && tags.challenge === 'a challenge' && tags.relay === at.relay.url;
          signers.add(id.pubkey);
          near.send(JSON.stringify(['OK', id.id, open, '']));
        } else if (!open && kind === 'EVENT') refuse(['OK', id.id, false]);
        else if (!open && filter?.kinds?.includes(1059)) refuse(['CLOSED', id]);
        else far.send(text);
      });
    });
    await at.arrive();
    await at.ask('m0c');
    await at.keyIsThere();
    expect(await at.npub()).toMatch(/^npub1m0c/);
    expect([...signers].map(nip19.npubEncode)).toHaveLength(1);
    expect([...signers].map(nip19.npubEncode)).not.toContain(await at.npub());
  });

  it('connects to nobody else once it asks, even if its script wanted to', async () => {
    // The page comes from a host that forbids nothing, so only the page itself can forbid it.
    const host = await hosted();
    at.origin = host.url;
    await at.page.goto(host.url + new URL(at.bot.link).hash);
    await at.page.getByText(/You ask npubbot/).waitFor();
    await at.askAsleep('m0c');
    const other = await slowTo(at.relay.port, 0);
    const blocked = await at.page.evaluate(async (url) => {
      const seen = new Promise<string>((done) =>
        document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective)));
      new WebSocket(url);
      return seen;
    }, `ws://127.0.0.1:${other.port}/`);
    for (const one of [other, host]) one.close();
    expect(blocked).toBe('connect-src');
    expect(await at.page.textContent('#connects')).toContain(`127.0.0.1:${at.relay.port}, and to nothing else`);
    at.problems.length = 0;
  });

  it('comes from the bot, which adds its name to the bare address, with strict headers', async () => {
    at.origin = new URL('/', at.bot.link).href;
    const reply = (await at.page.goto(at.origin))!;
    expect(new URL(at.page.url()).hash).toContain(at.bot.npub);
    const headers = reply.headers();
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(headers['content-security-policy']).toContain(`connect-src ws://127.0.0.1:${at.relay.port}`);
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
    await at.page.getByText(/You ask npubbot/).waitFor();
    // Nobody can put the page into a frame of theirs.
    const thief = await at.context.newPage();
    const said: string[] = [];
    thief.on('console', (message) => said.push(message.text()));
    await thief.setContent(`<iframe src="${at.bot.link}"></iframe>`);
    await until('the frame is refused', () => said.find((text) => text.includes('frame-ancestors')));
  });

  it('shows its own SHA-256 and can be installed', async () => {
    await at.arrive();
    const published = await (await at.context.request.get(new URL('/page.sha256', at.bot.link).href)).text();
    expect(published).toBe(FILE_HASH);
    expect(await at.page.textContent('#own-hash')).toBe(FILE_HASH);
    await at.says('#announced', /signed announcement names the same page/);
    const session = await at.context.newCDPSession(at.page);
    const { installabilityErrors } = await session.send('Page.getInstallabilityErrors');
    const manifest = await session.send('Page.getAppManifest');
    // A browser in incognito mode installs no page at all. That is no fault of the page.
    expect(installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito')).toEqual([]);
    expect(manifest.errors).toEqual([]);
    expect(JSON.parse(manifest.data ?? '{}')).toMatchObject({ start_url: at.page.url(), display: 'standalone' });
    await at.page.getByText('About this page').click();
    await camera('about')(at.page, 'open');
  });

  it('survives the death of its relay', async () => {
    const shot = camera('relay-gone');
    await at.arrive();
    await at.askAsleep('m0ct');
    await at.relay.down();
    await at.page.getByText(/No relay can be reached now/).waitFor();
    await shot(at.page, 'gone');
    // The browser complains about refused connections. That is expected here.
    at.problems.length = 0;
    await at.relay.up();
    at.bot.goOn();
    await at.keyIsThere();
    at.problems = at.problems.filter((problem) => !/ERR_CONNECTION_REFUSED/.test(problem));
    expect(await at.npub()).toMatch(/^npub1m0ct/);
    await shot(at.page, 'key');
  });

  it('tells the bot that nobody waits, when a request is left that is not kept', async () => {
    await at.arrive();
    const search = async () => {
      await at.ask('m0ctane8');
      await at.page.getByText(/The bot is searching/).waitFor();
    };
    const before = at.bot.cancelled();
    const isCancelled = (count: number) => until(`${count} jobs are cancelled`, () => (at.bot.cancelled() === before + count ? true : undefined));
    // Every question is answered by yes: it is left.
    const agree = () => at.page.once('dialog', (dialog) => void dialog.accept());
    await search();
    agree();
    await at.page.getByRole('button', { name: 'Ask for something else' }).click();
    await isCancelled(1);
    await search();
    agree();
    await at.page.reload();
    await isCancelled(2);
    await at.page.getByText(/You ask npubbot/).waitFor();
    await search();
    agree();
    await at.page.close({ runBeforeUnload: true });
    await isCancelled(3);
  });

  it('says what to do where no relay of the link is reached', async () => {
    const host = await hosted();
    at.origin = host.url;
    await at.page.goto(`${host.url}#${at.bot.npub}&relay=ws://127.0.0.1:9/`);
    await at.says('#bot-state', /None of the relays in this link.*try again, or get a new link/);
    expect(await at.page.getByRole('button', { name: 'Try again' }).isVisible()).toBe(true);
    await camera('dead-relay')(at.page, 'said');
    host.close();
    // The browser complains about the refused connection.
    at.problems.length = 0;
  });

  it('says what to do where the bot is silent', async () => {
    await at.page.clock.install();
    await at.arrive();
    await at.askAsleep('m0c');
    await at.page.clock.fastForward(21_000);
    await at.says('#state', /not answered yet.*Keep your request below, and come back later/);
    await camera('silent')(at.page, 'said');
  });

  it('says that the bot is offline', async () => {
    await at.bot.stop();
    const host = await hosted();
    at.origin = host.url;
    await at.page.goto(host.url + new URL(at.link).hash);
    await at.says('#bot-state', /npubbot is offline now\. You can ask/);
    await camera('offline')(at.page, 'said');
    host.close();
  });
});
