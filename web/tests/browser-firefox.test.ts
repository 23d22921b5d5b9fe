// The first-time path in an ordinary Firefox.

import { describe, expect, it } from 'vitest';
import { firefoxPath, launchFirefox } from './browsers';
import { camera, faults } from './harness';
import { missing, npubOf, sayWhatIsMissing, Stage } from './stage';

const path = firefoxPath();
if (path === undefined) process.stderr.write('NOT RUN: asking a real bot in Firefox (NPUBBOT_FIREFOX)\n');
else sayWhatIsMissing('asking a real bot in Firefox');

describe.skipIf(path === undefined || missing.length > 0)('asking the bot in Firefox', { timeout: 120_000 }, () => {
  it('leads to a key, and brings it back after a reload', async () => {
    const at = new Stage([], () => launchFirefox(path!));
    try {
      await at.start();
      at.page = await at.browser.newPage();
      const shot = camera('firefox');
      await at.arrive();
      expect(await faults(at.page)).toEqual([]);
      await shot(at.page, 'first');
      await at.ask('m0c');
      await at.keyIsThere();
      const npub = await at.npub();
      expect(npub).toMatch(/^npub1m0c/);
      expect(npubOf(await at.shownNsec())).toBe(npub);
      expect(await faults(at.page)).toEqual([]);
      await shot(at.page, 'key');
      await at.page.reload();
      await at.keyIsThere();
      expect(await at.npub()).toBe(npub);
      await at.page.locator('#forget').click();
      await at.page.getByText(/^Forgotten/).waitFor();
      expect(await at.holdsNsec()).toBe(false);
    } finally {
      await at.end();
    }
  });
});
