// Times and odds in words, and the bot's speed as it says it in public.

import { tell } from './texts';

/** In 95 of 100 cases a search takes at most this many times its mean: `ln 20`. */
export const RARELY_MORE = Math.log(20);

interface Span {
  readonly unit: string;
  readonly count: number;
  /** The minutes beyond hours. */
  readonly minutes?: number;
}

/** A time, rounded to the units people say, as the bot does (`miner/src/duration.rs`). */
function spanOf(seconds: number): Span {
  const whole = Math.round(seconds);
  if (whole < 1) return { unit: 'instant', count: 0 };
  if (whole < 120) return { unit: 'seconds', count: whole };
  const minutes = Math.round(whole / 60);
  if (whole < 7200) return { unit: 'minutes', count: minutes };
  if (whole < 172_800) return { unit: 'hours', count: Math.floor(minutes / 60), minutes: minutes % 60 };
  if (whole < 63_072_000) return { unit: 'days', count: Math.round(whole / 86_400) };
  return { unit: 'years', count: Math.round(Number(Math.min(whole / 31_536_000, 1e6).toPrecision(2))) };
}

/**
 * A time in words: `less than a second`, `4 seconds`, `3 min`, `3 h 20 min`, `9 days`, `2 years`;
 * at most a million years.
 */
export function duration(seconds: number): string {
  const { unit, count, minutes = 0 } = spanOf(seconds);
  return minutes > 0 ? tell('span-hours-minutes', { hours: count, minutes }) : tell('span', { unit, count });
}

/** A sentence about the mean time of a search: `That takes about 7 min, rarely more than 21.` */
export function takes(seconds: number): string {
  const [one, other] = [spanOf(seconds), spanOf(seconds * RARELY_MORE)];
  const mean = duration(seconds);
  if (one.unit === other.unit && one.count === other.count && one.minutes === other.minutes) {
    return tell('takes-exactly', { mean });
  }
  const isPlain = one.unit === other.unit && !one.minutes && !other.minutes;
  const most = isPlain ? tell('span-again', { unit: other.unit, count: other.count }) : duration(seconds * RARELY_MORE);
  return tell(one.unit === 'instant' ? 'takes-little' : 'takes-about', { mean, most });
}

/** Names of large numbers in the tables, and in those of languages that count in ten thousands. */
const THOUSANDS = ['none', 'thousand', 'million', 'billion', 'trillion', 'quadrillion', 'quintillion'];
const MYRIADS = ['none', 'man', 'oku', 'cho', 'kei', 'gai'];

/** A sentence about a difficulty: `About 1 key in 34 million fits.` Empty beyond all names. */
export function odds(bits: number): string {
  const [names, step] = tell('number-names') === 'myriads' ? [MYRIADS, 1e4] : [THOUSANDS, 1e3];
  const value = Number((2 ** bits).toPrecision(2));
  const power = bits < 9 ? 0 : Math.floor(Math.log(value * 1.000001) / Math.log(step));
  const unit = names[power];
  if (unit === undefined) return '';
  const quantity = bits < 9 ? Math.round(2 ** bits) : Number((value / step ** power).toPrecision(2));
  const number = String(quantity).replace('.', tell('decimal'));
  return tell('odds', { amount: tell('amount', { unit, number, quantity }) });
}

const PREFIXES: Readonly<Record<string, number>> = { '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };
const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^s(ec(ond)?s?)?$/, 1],
  [/^min(ute)?s?$/, 60],
  [/^h(our)?s?$/, 3600],
  [/^d(ay)?s?$/, 86_400],
  [/^y(ear)?s?$/, 31_536_000],
];

function inSeconds(value: string, unit: string): number | undefined {
  const factor = UNITS.find(([pattern]) => pattern.test(unit))?.[1];
  return factor === undefined ? undefined : Number(value) * factor;
}

/**
 * The candidates a second that a live status promises where the first characters are compared:
 * `85.0 M/s`, or `6, 7, 8 characters take about 13 s, 7 min, 3.6 h`. `undefined` where it says
 * neither.
 */
function rateIn(status: string): number | undefined {
  const said = status.match(/(\d+(?:\.\d+)?) ?([kMGTP]?)(?: keys)?\/s\b/);
  if (said) return Number(said[1]) * (PREFIXES[said[2] ?? ''] ?? 1);
  const times = status.match(/(\d+)(?:, \d+)* characters take about (\d+(?:\.\d+)?) ?([a-z]+)?/);
  const seconds = times && inSeconds(times[2] ?? '', times[3] ?? 's');
  return seconds ? 32 ** Number(times[1]) / seconds : undefined;
}

/** Candidates a second, by what is compared. */
export interface Rates {
  /** The rate if comparing the first characters is enough. */
  readonly starts: number;
  /** The rate if whole keys are compared; missing if the bot does not say it. */
  readonly whole?: number;
  /** The longest expected time that the bot accepts, in seconds; missing if it does not say it. */
  readonly longest?: number;
}

/**
 * The rates and the limit that a live status (kind 30315) promises: `85.0 M/s keys tested; …; 20.0
 * M/s for endings; nothing longer than 24 h`.
 */
export function ratesIn(status: string): Rates | undefined {
  const starts = rateIn(status);
  if (starts === undefined) return undefined;
  const whole = status.match(/(\d+(?:\.\d+)?) ?([kMGTP]?)\/s for endings\b/);
  const longest = timeIn(status.match(/\bnothing longer than (.*)$/)?.[1] ?? '');
  return {
    starts,
    ...(whole && { whole: Number(whole[1]) * (PREFIXES[whole[2] ?? ''] ?? 1) }),
    ...(longest !== undefined && { longest }),
  };
}

/**
 * The first expected time in a message of the bot, in seconds: `about 4 seconds`, `about 3 h 20
 * min`.
 */
export function expectedIn(message: string): number | undefined {
  for (const [, time] of message.matchAll(/\babout (\d.{0,40})/g)) {
    const seconds = timeIn(time ?? '');
    if (seconds !== undefined) return seconds;
  }
  return /\bless than a second\b/.test(message) ? 0.5 : undefined;
}

/** Seconds of a time at the start of an English text: `4 seconds`, `3 h 20 min`. */
function timeIn(text: string): number | undefined {
  const [, value, unit, more] = text.match(/^(\d+(?:\.\d+)?) ?([a-z]+)\b(?: (\d+) min\b)?/) ?? [];
  const seconds = inSeconds(value ?? '', unit ?? '');
  return seconds === undefined ? undefined : seconds + 60 * Number(more ?? 0);
}

/** Chance, 0 to 1, that a search with this mean has ended after `elapsed` (both in seconds). */
export function chanceAfter(elapsed: number, mean: number): number {
  return mean > 0 ? 1 - Math.exp(-Math.max(0, elapsed) / mean) : 0;
}
