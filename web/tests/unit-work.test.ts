// Proof of work: of a split request, with the figures of `miner/src/key/split_work.rs`, and of a gift
// wrap.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { understand } from '../src/answers';
import { pointOf } from '../src/key';
import { ChangingHash } from '../src/sha256';
import { digitsOf, MOST_BITS, splitWork, WorkFinder, workText, workWanted } from '../src/work';

const finder = (bits: number, bot = '01', half = 1n) => new WorkFinder(splitWork(bot.repeat(32), pointOf(half), bits));

describe('proof of work', () => {
  it('is the same as the bot’s', () => {
    expect([8, 12, 16].map((bits) => finder(bits).find(0, 1, 1 << 20))).toEqual([1074, 1074, 65_032]);
    expect(workText(65_032)).toBe('work:fe08');
  });

  it('is that of SHA-256, for every length of the text around the number', () => {
    const bytes = (length: number) => Uint8Array.from({ length }, (_, at) => (at * at + 31 * length) % 251);
    for (let length = 0; length < 200; length += 1) {
      const [before, after] = [bytes(length), bytes((7 * length) % 150)];
      const [number, isText] = [length * 2 ** 33 + length, length % 2 === 1];
      const written = isText ? Buffer.from(digitsOf(number)) : Buffer.from(number.toString(16).padStart(16, '0'), 'hex');
      const hash = createHash('sha256').update(before).update(written).update(after).digest();
      expect(new WorkFinder({ before, after, isText, bits: 64 }).bitsOf(number), `${length}`).toBe(Math.clz32(hash.readUInt32BE()));
      const text = new ChangingHash(before, written.length, after);
      text.bytes.set(written);
      expect(Buffer.from(Uint32Array.from(text.hash()).buffer).swap32()).toEqual(hash);
    }
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
