// Proof of work, with the figures of `miner/src/key/work.rs`.

import { createHash } from 'node:crypto';
import { nip19 } from 'nostr-tools';
import { describe, expect, it } from 'vitest';
import { understand } from '../src/answers';
import { NumberHash } from '../src/sha256';
import { MOST_BITS, orderOf, WorkFinder, workLine, workWanted } from '../src/work';

const [BOT, AUTHOR, NOON] = ['01'.repeat(32), '02'.repeat(32), Date.UTC(2026, 10, 26, 12)];
const order = (bits: number, bot = BOT, author = AUTHOR, now = NOON) => orderOf({ bot, author, bits }, now);

describe('proof of work', () => {
  it('is the same as the bot’s', () => {
    const find = (bits: number) => new WorkFinder(order(bits)).find(0, 1, 1 << 20);
    expect([8, 12, 16].map(find)).toEqual([141, 2233, 181_397]);
    expect(workLine(order(16), 181_397)).toBe('work 2026-11-26 2c495');
  });

  it('is that of SHA-256', () => {
    for (let length = 0; length < 50; length += 1) {
      const before = Uint8Array.from({ length: 32 }, (_, at) => (at * at + 31 * length) % 251);
      const number = length * 2 ** 33 + length;
      const written = Buffer.from(number.toString(16).padStart(16, '0'), 'hex');
      const hash = createHash('sha256').update(before).update(written).digest();
      expect(Buffer.from(Uint32Array.from(new NumberHash(before).of(number)).buffer).swap32()).toEqual(hash);
      expect(new WorkFinder({ before, day: '', bits: 64 }).bitsOf(number)).toBe(Math.clz32(hash.readUInt32BE()));
    }
  });

  it('is bound to the bot, the author and the day', () => {
    for (const other of [order(16, AUTHOR), order(16, BOT, BOT), order(16, BOT, AUTHOR, NOON + 86_400_000)]) {
      expect(new WorkFinder(other).bitsOf(181_397)).toBeLessThan(16);
    }
  });

  it('takes large numbers whole', () => {
    expect(new WorkFinder(order(8)).find(2 ** 40, 1, 1 << 12)).toBeGreaterThan(2 ** 40);
  });

  it('is read from the refusal in any language, and has a bound', () => {
    const command = (bits: number) => `npubbot work ${nip19.npubEncode(BOT)} ${nip19.npubEncode(AUTHOR)} ${bits}`;
    const refusal = `Viele …\n${command(18)}\nSchicke …`;
    const wanted = { bot: BOT, author: AUTHOR, bits: 18 };
    expect(workWanted(refusal)).toEqual(wanted);
    expect(understand([{ id: 'a', text: refusal, at: 1 }])).toMatchObject({ work: wanted });
    expect(workWanted(command(MOST_BITS + 1))).toBeUndefined();
    expect(workWanted(command(18).replace('npub1', 'npub1x'))).toBeUndefined();
    expect(workWanted('Job #1: about 18 seconds')).toBeUndefined();
  });
});
