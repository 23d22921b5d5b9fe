// The difficulty of patterns, the kernel that the bot needs for them, and look-alikes found sooner.

import { asksForBest } from './best';
import { chanceOf } from './chance';
import type { Rates } from './estimate';
import { known, timeOf } from './patterns';
import { ANY, chanceOfStarts, passingOf, type Shape } from './shapes';

/** Characters that the bot's fast search looks at. */
const FIRST = 6;
/**
 * The largest part of all keys that the fast search hands on, to be checked for the rest of a
 * pattern.
 */
const MOST_HANDED_ON = 2 ** -20;
/**
 * The largest part of all keys that may pass the quick tests of whole keys, unless at most
 * `PASSING_A_MATCH` keys pass for each match.
 */
const MOST_PASSING = 2 ** -16;
const PASSING_A_MATCH = 4096;
/**
 * Bits by which a look-alike must be easier to be worth naming: it is then found 1.9 times as fast.
 */
const WORTH_NAMING = Math.log2(1.9);

const difficulties = new Map<string, number | undefined>();

/**
 * Candidates that have to be tried on average, as a power of two; patterns that overlap are
 * counted once. `undefined` without a target, and for a pattern that takes too long to compute.
 */
export function bits(patterns: readonly string[]): number | undefined {
  if (timeOf(patterns) !== undefined) return undefined;
  const text = patterns.join(' ');
  if (!difficulties.has(text)) {
    if (difficulties.size > 100) difficulties.clear();
    difficulties.set(text, difficultyOf(patterns.map((one) => known(one).shapes)));
  }
  return difficulties.get(text);
}

/**
 * The difficulty as a power of two. `undefined` if it takes too long to compute. The bot then
 * estimates it and says the result.
 */
function difficultyOf(patterns: readonly (readonly Shape[])[]): number | undefined {
  const all = chanceOf(patterns.flat());
  return all === undefined ? undefined : -Math.log2(all);
}

/**
 * Mean seconds until the bot finds a key of any of these patterns, if it searches for nothing else.
 * `undefined` where a difficulty or the rate of whole keys is not known.
 *
 * As in the bot, each kind has half of the time if some patterns need whole keys and some do not.
 */
export function secondsAt(patterns: readonly string[], rates: Rates): number | undefined {
  const whole = patterns.filter((text) => comparesWholeKeys([text]));
  const starts = patterns.filter((text) => !whole.includes(text));
  const kinds = [{ some: starts, rate: rates.starts }, { some: whole, rate: rates.whole }].filter(({ some }) => some.length > 0);
  let found = 0;
  for (const { some, rate } of kinds) {
    const difficulty = bits(some);
    if (difficulty === undefined || rate === undefined) return undefined;
    found += rate / kinds.length / 2 ** difficulty;
  }
  return found > 0 ? 1 / found : undefined;
}

/**
 * Whether the bot must compare whole keys, which takes several times as long per key. It must if
 * the first six characters are not the whole pattern and are less selective than four characters.
 */
export function comparesWholeKeys(patterns: readonly string[]): boolean {
  const isWhole = ({ start, middle, end }: Shape) => {
    const isElsewhere = middle.length > 0 || end.length > 0 || start.slice(FIRST).some((set) => set !== ANY);
    return isElsewhere && chanceOfStarts([start.slice(0, FIRST)]) > MOST_HANDED_ON;
  };
  return patterns.some((text) => known(text).shapes.some(isWhole));
}

/** A pattern of look-alikes that is found sooner than this one; `undefined` if there is none. */
export function lookAlike(text: string): string | undefined {
  if (text.startsWith('~') || /[=:]/.test(text) || asksForBest(text)) return undefined;
  const alike = `~${text}`;
  const own = bits([text]);
  const other = bits([alike]);
  if (own === undefined || other === undefined || own - other < WORTH_NAMING) return undefined;
  return isSearchable(alike) ? alike : undefined;
}

/** Whether the bot's devices can search for a pattern of look-alikes. */
function isSearchable(text: string): boolean {
  const passing = known(text).shapes.reduce((sum, shape) => sum + passingOf(shape), 0);
  return !comparesWholeKeys([text]) || passing <= Math.max(MOST_PASSING, PASSING_A_MATCH / 2 ** (bits([text]) ?? 0));
}
