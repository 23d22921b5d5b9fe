// Proof of work of a split request: the same figures as in `miner/src/key/split_work.rs`.

import { describe, expect, it } from 'vitest';
import { understand } from '../src/answers';
import { pointOf } from '../src/key';
import { findWork, MOST_BITS, workBits, workTarget, workText, workWanted } from '../src/work';

const target = workTarget('01'.repeat(32), pointOf(1n));

describe('proof of work', () => {
  it('is the same as the bot’s', () => {
    expect([8, 12, 16].map((bits) => findWork(target, bits, 0, 1 << 20))).toEqual([1074, 1074, 65_032]);
    expect(workText(65_032)).toBe('work:fe08');
  });

  it('is bound to the bot and the half', () => {
    expect(workBits(workTarget('02'.repeat(32), pointOf(1n)), 65_032)).toBeLessThan(16);
    expect(workBits(workTarget('01'.repeat(32), pointOf(2n)), 65_032)).toBeLessThan(16);
  });

  it('takes large numbers whole', () => {
    expect(workBits(target, 2 ** 40 + 5)).not.toBeUndefined();
    expect(findWork(target, 8, 2 ** 40, 1 << 12)).toBeGreaterThan(2 ** 40);
  });

  it('is read from the refusal in any language, and has a bound', () => {
    const refusal = 'Viele …\nnpubbot split new m0ctane --out half.age --work 18 --bot npub1xyz\nSende mir die Zeile.';
    expect(workWanted(refusal)).toBe(18);
    expect(understand([{ id: 'a', text: refusal, at: 1 }])).toMatchObject({ work: 18 });
    expect(workWanted(refusal.replace('18', String(MOST_BITS + 1)))).toBeUndefined();
    expect(workWanted('Job #1: about 18 seconds')).toBeUndefined();
  });
});
