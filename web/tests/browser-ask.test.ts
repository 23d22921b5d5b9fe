// The page, served by a real `npubbot serve`, asks it through a real relay, in a real browser of a
// phone's size: what a person sees and does.

import { writeFileSync } from 'node:fs';
import { nip19 } from 'nostr-tools';
import { decrypt } from 'nostr-tools/nip49';
import type { Page } from 'playwright';
import { describe, expect, it } from 'vitest';
import { tables } from '../texts.mjs';
import { ARTEFACTS, camera, faults, tiny } from './harness';
import { missing, npubOf, sayWhatIsMissing, stage } from './stage';

sayWhatIsMissing('asking a real bot in a browser');

describe.skipIf(missing.length > 0)('asking the bot', { timeout: 90_000 }, () => {
  const at = stage();

  it('takes a person with a phone and nothing else to a key in six taps and one paste', async () => {
    await at.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: at.origin });
    const shot = camera('first-ten-minutes');
    const began = Date.now();
    const times: [string, number][] = [];
    let taps = 0;
    const tap = async (what: string, target: ReturnType<Page['getByRole']>) => {
      await target.tap();
      taps++;
      times.push([what, Date.now() - began]);
    };

    await at.page.goto(at.link);
    await at.page.getByText(/You ask npubbot/).waitFor();
    times.push(['the page has found the bot', Date.now() - began]);
    await shot(at.page, 'opened');
    await tap('tap: the field', at.page.getByRole('textbox', { name: 'What should your npub start with?' }));
    await at.page.keyboard.type('hank', { delay: 20 });
    await at.says('#prefix-odds', /About 1 key in 1 million fits\. That takes /);
    await shot(at.page, 'typed');
    await tap('tap: Find my key', at.page.getByRole('button', { name: 'Find my key' }));
    await at.keyIsThere();
    times.push(['the key is there', Date.now() - began]);
    await shot(at.page, 'key');
    expect(await at.npub()).toMatch(/^npub1hank/);
    await tap('tap: Copy your nsec', at.page.getByRole('button', { name: 'Copy your nsec' }));
    await at.page.getByText('Copied.').waitFor();
    // The client's log-in field, and the one paste.
    const client = await at.context.newPage();
    await client.setContent('<label>Log in <input id="login"></label>');
    await client.getByLabel('Log in').focus();
    await client.keyboard.press('Control+V');
    expect(npubOf(await client.inputValue('#login'))).toBe(await at.npub());
    times.push(['paste: the nsec in a client', Date.now() - began]);
    await client.close();
    await tap('tap: I have saved my key', at.page.getByRole('button', { name: /I have saved my key/ }));
    await at.page.getByText(/Forgotten/).waitFor();
    await shot(at.page, 'forgotten');
    expect(await at.holdsNsec()).toBe(false);
    expect(taps).toBeLessThanOrEqual(6);
    const lines = times.map(([what, time]) => `${(time / 1000).toFixed(1).padStart(6)} s  ${what}`);
    writeFileSync(`${ARTEFACTS}first-ten-minutes.txt`, `${lines.join('\n')}\n${taps} taps, 1 paste\n`);
    process.stderr.write(`first ten minutes:\n${lines.join('\n')}\n`);
  });

  it('says what a pattern means while it is typed, and asks for every kind', async () => {
    const shot = camera('patterns');
    await at.arrive();
    const field = at.page.getByRole('textbox', { name: 'What should your npub start with?' });
    await field.fill('~alice, =9 hex:c0de');
    await at.says('#prefix-odds', /~alice: starts with npub1 and any spelling that looks like “alice”\. =9: .*9 equal/);
    await at.says('#prefix-odds', /hex:c0de: .*About 1 key in 65 thousand fits\. That takes /);
    await shot(at.page, 'typed');
    await field.fill('m0ctane*safecaf');
    await at.says('#prefix-odds', /ends with safecaf.*this bot searches for 10 years at most\. Shorten it\./);
    expect(await at.page.getByRole('button', { name: 'Find my key' }).isDisabled()).toBe(true);
    // Whole keys are compared, at the speed that the bot tells for them.
    await field.fill('*cafe');
    await at.says('#prefix-odds', /About 1 key in 1 million fits\. That takes /);
    await field.fill('m0ct = 1');
    await at.says('#prefix-error', /number from 2 to 51/);
    await at.page.getByRole('button', { name: 'Use =2' }).click();
    expect(await field.inputValue()).toBe('m0ct =2');
    // A look-alike that is found sooner, with its time.
    await field.fill('m0ctanem0');
    await at.page.getByRole('button', { name: /^Use ~m0ctanem0, / }).click();
    expect(await field.inputValue()).toBe('~m0ctanem0');

    await at.ask('~hank');
    await at.keyIsThere();
    expect(await at.npub()).toMatch(/^npub1h[a4]nk/);
    expect(npubOf(await at.shownNsec())).toBe(await at.npub());
  });

  it('asks for the rarest key that is seen within a time', async () => {
    const shot = camera('best');
    await at.arrive();
    const field = at.page.getByRole('textbox', { name: 'What should your npub start with?' });
    await field.fill('best zeros');
    await at.says('#prefix-error', /like best 10m/);
    await field.fill('best zeros 10m');
    await at.says('#prefix-odds', /zero bits at its start.*searches for 10 min and says how rare the key is/);
    await shot(at.page, 'typed');
    await at.ask('best zeros 2s');
    await at.keyIsThere();
    // Twenty zero bits at least: four characters.
    expect(await at.npub()).toMatch(/^npub1qqqq/);
  });

  it('asks for the end of an npub', async () => {
    await at.arrive();
    await at.ask('*caf');
    await at.keyIsThere();
    expect(await at.npub()).toMatch(/caf$/);
  });

  it('offers what fits instead of what takes longer than the bot searches', async () => {
    await at.arrive();
    await at.page.locator('#prefix').fill('m0ctanem0ctane');
    await at.says('#prefix-odds', /That would take about .* years, and this bot searches for 10 years at most\. This fits:/);
    expect(await at.page.getByRole('button', { name: 'Find my key' }).isDisabled()).toBe(true);
    await camera('too-long')(at.page, 'typed');
    await at.page.getByRole('button', { name: /^Use m0ctanem/ }).click();
    await at.says('#prefix-odds', /That takes about /);
    expect(await at.page.getByRole('button', { name: 'Find my key' }).isDisabled()).toBe(false);
  });

  it('hands the key over as nsec, QR code and ncryptsec, and saves it in a password manager', async () => {
    const shot = camera('hand-over');
    // The browser's own dialog cannot be pressed by a test; what it is asked for can be seen.
    await at.page.addInitScript(() => {
      Object.defineProperty(navigator, 'credentials', {
        value: { store: async (credential: unknown) => Object.assign(window, { saved: credential }) },
      });
    });
    await at.arrive();
    await at.ask('m0c');
    await at.keyIsThere();
    expect(await at.holdsNsec()).toBe(false);
    const nsec = await at.shownNsec();
    expect(npubOf(nsec)).toBe(await at.npub());
    expect(await at.page.getByRole('img', { name: 'QR code of your nsec' }).isVisible()).toBe(true);
    await shot(at.page, 'shown');
    await at.page.getByRole('button', { name: 'Save in the password manager' }).click();
    const saved = await at.page.evaluate(() => {
      const { id, password } = (window as unknown as { saved: { id: string; password: string } }).saved;
      return { id, password };
    });
    expect(saved).toEqual({ id: await at.npub(), password: nsec });
    await at.page.getByText('With a password (ncryptsec)').click();
    await at.page.getByLabel('Password', { exact: true }).fill('correct horse');
    await at.page.getByRole('button', { name: 'Encrypt' }).click();
    const locked = at.page.getByRole('textbox', { name: 'Your ncryptsec' });
    await locked.waitFor({ timeout: 30_000 });
    expect(nip19.nsecEncode(decrypt(await locked.inputValue(), 'correct horse'))).toBe(nsec);
    await shot(at.page, 'ncryptsec');
    expect(await at.page.getByRole('link', { name: 'Primal' }).getAttribute('rel')).toBe('noopener noreferrer');
    expect(await at.page.getByRole('link', { name: 'The Nostr app' }).getAttribute('href')).toBe(`nostr:${await at.npub()}`);
  });

  it('works with a keyboard alone', async () => {
    const shot = camera('keyboard');
    await at.arrive();
    const focused = () => at.page.evaluate(() => {
      const at = document.activeElement as HTMLElement;
      return at.id || at.tagName;
    });
    const tabTo = async (id: string) => {
      for (let presses = 0; presses < 30 && (await focused()) !== id; presses++) await at.page.keyboard.press('Tab');
      expect(await focused()).toBe(id);
    };
    await tabTo('prefix');
    await at.page.keyboard.type('bob');
    await at.says('#prefix-error', /“b” cannot occur.*“808” or “6q6”/);
    await shot(at.page, 'look-alikes');
    await at.page.keyboard.press('Tab');
    expect(await at.page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toMatch(/^Use 808/);
    await at.page.keyboard.press('Enter');
    expect(await at.page.inputValue('#prefix')).toBe('808');
    expect(await focused()).toBe('ask-button');
    await at.page.keyboard.press('Enter');
    await at.keyIsThere();
    expect(await focused()).toBe('done-title');
    await shot(at.page, 'key');
    await tabTo('show-nsec');
    await at.page.keyboard.press('Enter');
    expect(npubOf(await at.page.inputValue('#nsec'))).toMatch(/^npub1808/);
    await tabTo('forget');
    await at.page.keyboard.press('Enter');
    await at.page.getByText(/Forgotten/).waitFor();
  });

  it('has no fault of axe-core and room for thumbs on every screen, in light and dark', async () => {
    const shot = camera('dark');
    const check = async (screen: string) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await at.page.emulateMedia({ colorScheme });
        expect({ screen, colorScheme, faults: await faults(at.page), tiny: await tiny(at.page) })
          .toEqual({ screen, colorScheme, faults: [], tiny: [] });
      }
      await shot(at.page, screen);
    };
    await at.arrive();
    await check('first');
    await at.page.locator('#prefix').fill('nico');
    await check('wrong letter');
    await at.page.getByRole('button', { name: 'Use nlc0' }).click();
    at.bot.pause();
    await at.ask('nlc0m');
    await at.page.getByText(/Waiting for the bot’s answer/).waitFor();
    await check('waiting');
    at.bot.goOn();
    await at.keyIsThere();
    await at.page.getByRole('button', { name: 'Show' }).click();
    await check('key');
    await at.page.locator('#forget').click();
    await check('forgotten');
  });

  it('speaks the language of the browser, or the one that is chosen, also in large type', async () => {
    const shot = camera('languages');
    for (const [code, texts] of Object.entries(tables() as Record<string, string>)) {
      const text = (id: string) => texts.match(new RegExp(`^${id} = (.*)$`, 'm'))?.[1];
      await at.context.close();
      await at.open(code);
      await at.arrive();
      await at.page.evaluate(() => (document.documentElement.style.fontSize = '200%'));
      const look = async (screen: string, id: string) => {
        expect(await at.page.textContent(`[data-text=${id}]`)).toBe(text(id));
        const wide = await at.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        expect({ code, screen, wide, faults: await faults(at.page) }).toEqual({ code, screen, wide: false, faults: [] });
        await shot(at.page, `${code}-${screen}`);
      };
      expect(await at.page.locator('html').evaluate(({ lang, dir }: HTMLElement) => [lang, dir])).toEqual([code, 'ltr']);
      expect(await at.page.locator('#language').inputValue()).toBe(code);
      await look('first', 'ask-title');
      await at.ask('m0c');
      await at.keyIsThere();
      await look('key', 'nsec-warning');
      // The bot's words are in this language too. A key that is found at once may come before them, or
      // the message that explains it is the newest.
      const words = await at.page.textContent('#bot-words');
      if (words !== '' && !words?.includes('npubbot combine')) expect(words).toContain(text('odds')!.split('{')[0]!.trim().split(' ')[0]);
    }
    // Another one is chosen in the middle, and on the next visit.
    await at.page.locator('#language').selectOption('en');
    expect(await at.page.textContent('#done-title')).toBe('Your key is here');
    await at.page.locator('#show-nsec').click();
    await at.page.reload();
    await at.page.getByText('Your key is here').waitFor();
    await at.page.evaluate(() => localStorage.clear());
  });

  it('shows what the bot says where it refuses, and nothing that says it searches', async () => {
    await at.arrive();
    // More patterns than the bot takes in one request.
    const many = 'm0c m0d m0f m0g m0h m0j m0k m0l m0m m0n m0p';
    await at.ask(many);
    const words = at.page.locator('#bot-words');
    await words.waitFor();
    expect(await words.textContent()).toMatch(/11 words, and I take at most 10/);
    await camera('refused')(at.page, 'words');
    const shown = await at.page.evaluate(() => (document.querySelector('#waiting') as HTMLElement).innerText);
    expect(shown).toMatch(/Nothing was started\. Read what the bot says/);
    expect(shown).not.toMatch(/searching|accepted/i);
    // Nothing is lost, so nothing is asked.
    await at.page.getByRole('button', { name: 'Ask for something else' }).click();
    expect(await at.page.locator('#prefix').inputValue()).toBe(many);
    await at.ask('m0c');
    await at.keyIsThere();
    expect(await at.npub()).toMatch(/^npub1m0c/);
    expect(await at.page.locator('#npub mark').allTextContents()).toEqual(['m', '0', 'c']);
  });

  it('stops a search', async () => {
    await at.arrive();
    await at.ask('m0ctane7');
    await at.page.getByText(/The bot is searching/).waitFor();
    await camera('stop')(at.page, 'searching');
    // Closing the tab now would lose the half: the browser asks first.
    const asking = at.page.waitForEvent('dialog');
    void at.page.close({ runBeforeUnload: true });
    const dialog = await asking;
    expect(dialog.type()).toBe('beforeunload');
    await dialog.dismiss();
    await at.page.getByRole('button', { name: 'Stop the search' }).click();
    await at.page.getByText(/^Stopped/).waitFor();
    expect(await at.page.locator('#bot-words').isVisible()).toBe(true);
    await camera('stopped')(at.page, 'stopped');
  });
});
