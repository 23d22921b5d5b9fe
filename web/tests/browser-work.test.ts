// The page asks a real `npubbot serve` to which too many new askers come: it does the work that the bot
// asks for, and gets its key.

import { describe, expect, it } from 'vitest';
import { camera } from './harness';
import { missing, npubOf, sayWhatIsMissing, stage } from './stage';

sayWhatIsMissing('the work that a bot with many new askers asks for');

describe.skipIf(missing.length > 0)('asking a bot that asks for work', { timeout: 90_000 }, () => {
  const at = stage(['new_askers_per_minute = 0']);

  it('does the work in a worker, shows how far it is, and gets the key', async () => {
    const shot = camera('work');
    await at.arrive();
    await at.ask('cat');
    await at.says('#state', /wants some work first|The work is done|is searching/);
    await shot(at.page, 'mining');
    await at.keyIsThere();
    expect(await at.npub()).toMatch(/^npub1cat/);
    expect(npubOf(await at.shownNsec())).toBe(await at.npub());
    expect(await at.page.textContent('#bot-words')).toMatch(/#1/);
    expect(at.bot.accepted()).toBe(1);
  });
});
