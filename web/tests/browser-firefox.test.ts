// The first-time path in an ordinary Firefox, with `npubbot demo --page`: bot, relay and page in one
// process.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Page } from 'playwright';
import { describe, expect, it } from 'vitest';
import { firefoxPath, launchFirefox } from './browsers';
import { camera, faults, until } from './harness';
import { bin, npubOf } from './stage';

const path = firefoxPath();
const missing = [...(path === undefined ? ['a Firefox (NPUBBOT_FIREFOX)'] : []), ...(bin ? [] : ['the bot (NPUBBOT_BIN)'])];
if (missing.length > 0) process.stderr.write(`NOT RUN: the demo in Firefox; missing: ${missing.join(', ')}\n`);

describe.skipIf(missing.length > 0)('the demo in Firefox', { timeout: 120_000 }, () => {
  it('leads to a key, and brings it back after a reload', async () => {
    const demo = spawn(bin!, ['demo', '--page', '--device', 'cpu'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(demo, 'exit');
    let said = '';
    demo.stdout.on('data', (bytes) => (said += String(bytes)));
    const browser = await launchFirefox(path!);
    try {
      const link = await until('the demo says its address', () => said.match(/^http\S+#npub1\S+/m)?.[0], 60_000);
      const page: Page = await browser.newPage();
      const shot = camera('firefox');
      const keyIsThere = () => page.locator('#done-title').waitFor({ timeout: 60_000 });
      await page.goto(link);
      await page.getByText(/You ask npubbot/).waitFor();
      expect(await faults(page)).toEqual([]);
      await shot(page, 'first');
      await page.locator('#prefix').fill('m0c');
      await page.locator('#ask-button').click();
      await keyIsThere();
      const npub = (await page.textContent('#npub'))!;
      expect(npub).toMatch(/^npub1m0c/);
      await page.locator('#show-nsec').click();
      expect(npubOf(await page.inputValue('#nsec'))).toBe(npub);
      expect(await faults(page)).toEqual([]);
      await shot(page, 'key');
      await page.reload();
      await keyIsThere();
      expect(await page.textContent('#npub')).toBe(npub);
      await page.locator('#forget').click();
      await page.getByText(/^Forgotten/).waitFor();
      expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    } finally {
      await browser.close();
      demo.kill('SIGINT');
    }
    expect(await ended).toEqual([0, null]);
  });
});
