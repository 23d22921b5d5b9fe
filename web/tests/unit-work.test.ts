// Proof of work: of a split request, with the figures of `miner/src/key/split_work.rs`, and of a gift
// wrap.

import { describe, expect, it } from 'vitest';
import { understand } from '../src/answers';
import { pointOf } from '../src/key';
import { MOST_BITS, splitWork, WorkFinder, workText, workWanted } from '../src/work';

const finder = (bits: number, bot = '01', half = 1n) => new WorkFinder(splitWork(bot.repeat(32), pointOf(half), bits));

describe('proof of work', () => {
  it('is the same as the bot’s', () => {
    expect([8, 12, 16].map((bits) => finder(bits).find(0, 1, 1 << 20))).toEqual([1074, 1074, 65_032]);
    expect(workText(65_032)).toBe('work:fe08');
  });

  it('is bound to the bot and the half', () => {
    expect(finder(16, '02').bitsOf(65_032)).toBeLessThan(16);
    expect(finder(16, '01', 2n).bitsOf(65_032)).toBeLessThan(16);
  });

  it('takes large numbers whole', () => {
    expect(finder(8).bitsOf(2 ** 40 + 5)).not.toBeUndefined();
    expect(finder(8).find(2 ** 40, 1, 1 << 12)).toBeGreaterThan(2 ** 40);
  });

  it('is read from the refusal in any language, and has a bound', () => {
    const refusal = 'Viele …\nnpubbot split new m0ctane --out half.age --work 18 --bot npub1xyz\nSende mir die Zeile.';
    expect(workWanted(refusal)).toEqual({ of: 'half', bits: 18 });
    expect(understand([{ id: 'a', text: refusal, at: 1 }])).toMatchObject({ work: { of: 'half', bits: 18 } });
    expect(workWanted(refusal.replace('18', String(MOST_BITS + 1)))).toBeUndefined();
    expect(workWanted('Job #1: about 18 seconds')).toBeUndefined();
    expect(workWanted('… (kind 1059), promised in its tag ["nonce", "…", "20"].')).toEqual({ of: 'wrap', bits: 20 });
  });
});
