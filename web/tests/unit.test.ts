// Tests against vectors that were computed with plain integers (vectors.py), with edge values, and
// with every way a text can be wrong.

import { describe, expect, it } from 'vitest';
import { decrypt } from 'nostr-tools/nip49';
import { halfText, npubOf, nsecOf, ORDER, parseHalf, pointHex, randomHalf } from '../src/key';
import { encrypt } from '../src/ncryptsec';
import { bits } from '../src/difficulty';
import { matches, parsePattern, parsePatterns } from '../src/patterns';
import { combine, parseTweak } from '../src/tweak';
import file from './vectors.json';

const bad = file.bad;
const half = parseHalf(bad.half);
const good = file.vectors.at(-2)!;

describe(`vectors of seed ${file.seed}`, () => {
  it('has edge values and both answers', () => {
    expect(file.vectors.length).toBeGreaterThan(200);
    expect(file.vectors.filter((v) => v.nsec === undefined).length).toBeGreaterThan(3);
    expect(file.vectors.filter((v) => v.negated).length).toBeGreaterThan(70);
  });

  it('reads halves and writes them and their points', () => {
    for (const v of file.vectors) {
      expect(halfText(parseHalf(v.half))).toBe(v.half);
      expect(pointHex(parseHalf(v.half))).toBe(v.point);
    }
  });

  it('makes the same key, or says that none is left', () => {
    for (const v of file.vectors) {
      const tweak = parseTweak(v.tweak);
      expect([tweak.rotation, tweak.offset]).toEqual([v.rotation, BigInt(`0x${v.offset}`)]);
      if (v.nsec === undefined) {
        expect(() => combine(parseHalf(v.half), tweak, [])).toThrow(/cancel out.*new half/);
      } else {
        const made = combine(parseHalf(v.half), tweak, []);
        expect([nsecOf(made.key), made.npub]).toEqual([v.nsec, v.npub]);
      }
    }
  });
});

describe('what is wrong is said, with what would work', () => {
  const refuses = (text: string, problem: RegExp) => expect(() => combine(half, parseTweak(text), [])).toThrow(problem);

  it('a damaged tweak: every character of it changed', () => {
    for (let at = 'ntweak1'.length; at < good.tweak.length; at++) {
      const other = good.tweak[at] === 'q' ? 'p' : 'q';
      const damaged = good.tweak.slice(0, at) + other + good.tweak.slice(at + 1);
      expect(() => parseTweak(damaged)).toThrow(/damaged.*again/);
    }
    refuses(good.tweak.slice(0, -3), /damaged/);
    refuses(good.tweak.slice(0, 20) + good.tweak.slice(20).toUpperCase(), /damaged/);
  });

  it('another kind of text', () => {
    refuses(good.nsec!, /secret key \(nsec\).*ntweak1/);
    refuses(good.npub!, /public key \(npub\).*ntweak1/);
    refuses(good.half, /your half.*never send.*ntweak1/);
    refuses('hello', /another text.*ntweak1/);
    refuses('  ', /missing.*ntweak1/);
    expect(() => parseHalf(good.tweak)).toThrow(/the bot’s answer.*nhalf1/);
    expect(() => parseHalf(good.nsec!)).toThrow(/secret key.*nhalf1/);
  });

  it('no secret stands in an error', () => {
    for (const secret of [good.nsec!, good.half, `${good.half}x`]) {
      for (const read of [parseTweak, parseHalf]) {
        try {
          read(secret);
        } catch (error) {
          expect(String(error)).not.toContain(secret.slice(6, 30));
        }
      }
    }
  });

  it('versions, rotations, offsets and lengths that do not exist', () => {
    refuses(bad['version 2'], /version 2.*newer/);
    refuses(bad['version 0'], /version 0/);
    refuses(bad['rotation 3'], /cannot be/);
    refuses(bad['rotation 255'], /cannot be/);
    refuses(bad['offset n'], /cannot be/);
    refuses(bad['offset 2^256-1'], /cannot be/);
    refuses(bad.short, /damaged/);
    refuses(bad.long, /damaged/);
    expect(() => parseHalf(bad['half 0'])).toThrow(/no key/);
    expect(() => parseHalf(bad['half n'])).toThrow(/no key/);
    expect(() => parseHalf(bad['half version 2'])).toThrow(/version 2/);
  });

  it('a tweak for another half', () => refuses(bad['other point'], /another half/));

  it('an npub with another start', () => {
    const tweak = parseTweak(good.tweak);
    const start = good.npub!.slice(5, 9);
    expect(combine(parseHalf(good.half), tweak, ['qqqqqqqq', start]).npub).toBe(good.npub);
    expect(() => combine(parseHalf(good.half), tweak, ['qqqqqqqq'])).toThrow(`${good.npub}, which does not fit`);
  });

  it('two tweaks at once, while one may stand in a message, in upper case, twice', () => {
    expect(() => parseTweak(`${good.tweak} ${bad['other point']}`)).toThrow(/2 texts/);
    expect(parseTweak(`Found!\n${good.tweak}.\n${good.tweak}`)).toEqual(parseTweak(good.tweak));
    expect(parseTweak(good.tweak.toUpperCase())).toEqual(parseTweak(good.tweak));
  });
});

describe('the random half', () => {
  it('draws again outside 1..n-1', () => {
    const bytes = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
    const draws = [0n, ORDER, ORDER + 1n, 2n ** 256n - 1n, ORDER - 1n, 7n];
    const feed = (into: Uint8Array) => into.set(bytes(draws.shift()!));
    expect(randomHalf(feed)).toBe(ORDER - 1n);
    expect(draws).toEqual([7n]);
  });

  it('comes from the browser and differs', () => {
    const halves = new Set(Array.from({ length: 50 }, () => randomHalf()));
    expect(halves.size).toBe(50);
    for (const one of halves) expect(one > 2n ** 190n && one < ORDER).toBe(true);
  });
});

describe('patterns', () => {
  it('forgives case, npub1, nostr: and repetition', () => {
    expect(parsePatterns(' M0CTANE, npub1cat\nnostr:npub1dad  cat')).toEqual(['m0ctane', 'cat', 'dad']);
  });

  it('explains letters that cannot occur', () => {
    expect(() => parsePattern('bob')).toThrow(/“b” cannot occur.*“808” or “6q6”/);
    expect(() => parsePattern('nico')).toThrow(/“i” cannot.*“nlc0” or “njcq”/);
    expect(() => parsePattern('zo1')).toThrow(/“o” cannot/);
    expect(() => parsePattern('l1')).toThrow(/“1” cannot/);
    expect(() => parsePattern('é')).toThrow(/use the characters/i);
    expect(() => parsePatterns('')).toThrow(/characters that should follow npub1/);
    expect(() => parsePattern('npub1')).toThrow(/no prefix in it/i);
  });

  it('knows what no key can start with', () => {
    expect(parsePattern('q'.repeat(52))).toHaveLength(52);
    expect(() => parsePattern(`${'q'.repeat(51)}p`)).toThrow(/No public key/);
    expect(() => parsePattern('l'.repeat(51))).toThrow(/No public key/);
    expect(parsePattern('l'.repeat(44))).toHaveLength(44);
    expect(() => parsePattern('q'.repeat(53))).toThrow(/too many/);
  });

  it('counts candidates', () => {
    expect(bits(['m0ctane'])).toBe(35);
    expect(bits(['cat', 'dad'])).toBe(14);
    expect(matches('npub1catq', ['dad', 'cat'])).toBe(true);
    expect(matches('npub1qcat', ['cat'])).toBe(false);
  });
});

describe('NIP-49', () => {
  it('opens in nostr-tools, with the password in another form of Unicode', async () => {
    const key = parseHalf(good.half);
    const text = await encrypt(key, 'ÅΩẛ̣');
    expect(nsecOf(BigInt(`0x${Buffer.from(decrypt(text, 'ÅΩṩ')).toString('hex')}`))).toBe(nsecOf(key));
    expect(() => decrypt(text, 'wrong')).toThrow();
    expect(npubOf(key)).toMatch(/^npub1/);
  }, 30_000);
});
