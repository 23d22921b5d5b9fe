// Times and odds in words, and the bot's speed as it says it in public.

/** In 95 of 100 cases a search takes at most this many times its mean: `ln 20`. */
export const RARELY_MORE = Math.log(20);

/**
 * A time in words: `less than a second`, `4 seconds`, `3 min`, `3 h 20 min`, `9 days`, `2 years`;
 * at most a million years.
 */
export function duration(seconds: number): string {
  const count = (value: number, unit: string) => `${value} ${unit}${value === 1 ? '' : 's'}`;
  const whole = Math.round(seconds);
  if (whole < 1) return 'less than a second';
  if (whole < 120) return count(whole, 'second');
  if (whole < 7200) return `${Math.round(whole / 60)} min`;
  if (whole < 172_800) {
    const minutes = Math.round(whole / 60);
    return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }
  if (whole < 63_072_000) return count(Math.round(whole / 86_400), 'day');
  const years = whole / 31_536_000;
  return years < 1e6 ? `${new Intl.NumberFormat('en', { maximumSignificantDigits: 3 }).format(years)} years` : 'a million years';
}

/** A difficulty in words: `1 key in 34 million`, or a power of two beyond the trillions. */
export function odds(bits: number): string {
  if (bits > 49) return `1 key in 2^${bits.toFixed(0)}`;
  const format = { notation: 'compact', compactDisplay: 'long', maximumSignificantDigits: 2 } as const;
  return `1 key in ${new Intl.NumberFormat('en', format).format(2 ** bits)}`;
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
}

/**
 * The rates that a live status (kind 30315) promises: `85.0 M/s keys tested; …; 20.0 M/s for
 * endings`.
 */
export function ratesIn(status: string): Rates | undefined {
  const starts = rateIn(status);
  if (starts === undefined) return undefined;
  const said = status.match(/(\d+(?:\.\d+)?) ?([kMGTP]?)\/s for endings\b/);
  return said ? { starts, whole: Number(said[1]) * (PREFIXES[said[2] ?? ''] ?? 1) } : { starts };
}

/**
 * The first expected time in a message of the bot, in seconds: `about 4 seconds`, `about 3 h 20
 * min`.
 */
export function expectedIn(message: string): number | undefined {
  for (const [, value, unit, more] of message.matchAll(/\babout (\d+(?:\.\d+)?) ?([a-z]+)\b(?: (\d+) min\b)?/g)) {
    const seconds = inSeconds(value ?? '', unit ?? '');
    if (seconds !== undefined) return seconds + 60 * Number(more ?? 0);
  }
  return /\bless than a second\b/.test(message) ? 0.5 : undefined;
}

/** Chance, 0 to 1, that a search with this mean has ended after `elapsed` (both in seconds). */
export function chanceAfter(elapsed: number, mean: number): number {
  return mean > 0 ? 1 - Math.exp(-Math.max(0, elapsed) / mean) : 0;
}
