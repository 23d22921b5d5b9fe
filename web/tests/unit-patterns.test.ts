// The page's grammar against the bot's: tests/patterns.json is written by `tests/it/cli/page.rs`.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bits, comparesWholeKeys, lookAlike, secondsAt } from '../src/difficulty';
import { PatternError } from '../src/pattern-error';
import {
  matches,
  meaningOf,
  nameOf,
  parsePatterns,
  timeOf,
} from '../src/patterns';
import { ENGLISH, JAPANESE } from '../src/words';
import file from './patterns.json';

interface BestVector {
  readonly written: string;
  readonly begins?: string;
  readonly seconds?: number;
}

interface Vector {
  readonly written: string;
  readonly texts?: readonly string[];
  readonly bits?: number;
  readonly fits?: readonly number[];
  readonly whole?: boolean;
  /** Of a single pattern: the look-alike that is found sooner, or none. */
  readonly cheaper?: string | null;
  /** For a refusal: what the bot names in place of it. */
  readonly instead?: readonly string[];
}

/** The patterns that the page names in place of a text that it refuses. */
function insteadOf(text: string): readonly string[] | undefined {
  try {
    parsePatterns(text);
  } catch (error) {
    return error instanceof PatternError ? error.instead : undefined;
  }
  return undefined;
}

describe('patterns as the bot reads them', () => {
  const vectors = file.patterns as readonly Vector[];

  it('has all kinds, and refusals', () => {
    expect(vectors.length).toBeGreaterThan(150);
    expect(vectors.filter((one) => one.texts === undefined).length).toBeGreaterThan(15);
    expect(vectors.filter((one) => one.whole).length).toBeGreaterThan(50);
    expect(vectors.filter((one) => one.cheaper).length).toBeGreaterThan(50);
  });

  for (const { written, texts, bits: expected, fits, whole, cheaper, instead } of vectors) {
    it(`“${written}”`, () => {
      if (texts === undefined) {
        expect(insteadOf(written)).toEqual(instead);
        for (const text of instead ?? []) expect(parsePatterns(text)).toEqual([text]);
        return;
      }
      const patterns = parsePatterns(written);
      expect(patterns).toEqual([...new Set(texts)]);
      // A second reading changes nothing.
      expect(parsePatterns(patterns.join(' '))).toEqual(patterns);
      expect(Math.abs((bits(patterns) ?? NaN) - (expected ?? NaN))).toBeLessThan(2e-9);
      if (cheaper !== undefined) expect(lookAlike(patterns[0] ?? '')).toEqual(cheaper ?? undefined);
      const fitting = file.npubs.flatMap((npub, at) => (matches(npub, patterns) ? [at] : []));
      expect(fitting).toEqual(fits);
      expect(comparesWholeKeys(patterns)).toBe(whole ?? false);
      for (const text of patterns) expect(meaningOf(text)).not.toBe('');
    });
  }

  for (const { written, begins, seconds } of file.best as readonly BestVector[]) {
    it(`“${written}”`, () => {
      if (begins === undefined) {
        expect(() => parsePatterns(written)).toThrow(/best 10m/);
        return;
      }
      const patterns = parsePatterns(written);
      const [text = ''] = patterns;
      expect([patterns.length, text.startsWith(begins), nameOf(text)]).toEqual([1, true, text]);
      expect(timeOf(patterns)).toBe(seconds);
      expect(parsePatterns(text)).toEqual(patterns);
      expect([bits(patterns), lookAlike(text)]).toEqual([undefined, undefined]);
      expect(matches(file.npubs[2] ?? '', patterns)).toBe(true);
      expect(meaningOf(text)).toMatch(/^the rarest key seen in .* of search, by /);
    });
  }

  it('takes as long as the bot says, also where whole keys are compared', () => {
    const rates = { starts: 80e6, whole: 20e6 };
    expect(secondsAt(['m0ctane', 'l0l'], rates)).toBeCloseTo(1 / (80e6 * (2 ** -35 + 2 ** -15)), 9);
    expect(secondsAt(['*cafe'], rates)).toBeCloseTo(2 ** 20 / 20e6, 9);
    // Both kinds: each has half of the time.
    expect(secondsAt(['m0ctane', '*cafe'], rates)).toBeCloseTo(1 / (40e6 * 2 ** -35 + 10e6 * 2 ** -20), 9);
    expect([secondsAt(['*cafe'], { starts: 80e6 }), secondsAt(['m0ct'], { starts: 80e6 })]).toEqual([undefined, 2 ** 20 / 80e6]);
  });

  it('has the words of the built-in list', () => {
    const list = (name: string) =>
      readFileSync(new URL(`../../miner/src/pattern/words/${name}.txt`, import.meta.url), 'utf8')
        .split('\n')
        .filter((line) => !line.startsWith('#'))
        .join(' ')
        .trim()
        .split(/\s+/);
    expect(ENGLISH.split(' ')).toEqual(list('english'));
    expect(JAPANESE.split(' ')).toEqual(list('japanese'));
  });

  it('offers look-alikes for what cannot occur, and where they are sooner', () => {
    expect(insteadOf('m0c b0b')).toEqual(['808', '606', '~b0b']);
    expect(() => parsePatterns('m0c NPUB1b0b')).toThrow(expect.objectContaining({ word: 'NPUB1b0b' }));
    expect([lookAlike('m0ctane'), lookAlike('kmn'), lookAlike('~cat'), lookAlike('=7')]).toEqual([
      '~m0ctane',
      undefined,
      undefined,
      undefined,
    ]);
    expect([nameOf('m0?t'), nameOf('~cat'), nameOf('=7')]).toEqual(['npub1m0?t', '~cat', '=7']);
  });
});
