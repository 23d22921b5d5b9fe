// Searches without a target: `best 10m`, `best zeros 10m`, `best words 10m`, `surprise`. Their
// result is the rarest key that was seen when the time is up.

import { duration } from './estimate';
import { tell } from './texts';

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(s|secs?|seconds?)$/, 1],
  [/^(m|mins?|minutes?)$/, 60],
  [/^(h|hrs?|hours?)$/, 3600],
  [/^(d|days?)$/, 86_400],
];

export interface Best {
  /** The canonical text: `best zeros 1h30m`. */
  readonly text: string;
  readonly meaning: () => string;
  readonly seconds: number;
}

/** Whether a text asks for the rarest key. No key can start with either word. */
export function asksForBest(text: string): boolean {
  return /^\s*(best|surprise)\b/i.test(text);
}

/**
 * Reads a search without a target. `undefined` if the time is missing or longer than ten years, or
 * if something follows it.
 */
export function readBest(written: string): Best | undefined {
  const text = written.trim().toLowerCase();
  const [, family = '', time = ''] =
    text === 'surprise' ? ['', 'words', '10s'] : (text.match(/^best(?:\s+(zeros|words))?\s+(\d.*)$/) ?? []);
  const seconds = secondsOf(time.replace(/\s+/g, ''));
  if (seconds === undefined) return undefined;
  return {
    text: `best ${family}${family === '' ? '' : ' '}${timeText(seconds)}`,
    meaning: () => tell('meaning-best', { span: duration(seconds), family: family === '' ? 'any' : family }),
    seconds,
  };
}

/** Seconds in `10m`, `1h30min`; `undefined` for anything else. */
function secondsOf(time: string): number | undefined {
  if (!/^(\d{1,9}[a-z]+)+$/.test(time)) return undefined;
  let seconds = 0;
  for (const [, value, unit] of time.matchAll(/(\d+)([a-z]+)/g)) {
    const factor = UNITS.find(([names]) => names.test(unit ?? ''))?.[1];
    if (factor === undefined) return undefined;
    seconds += Number(value) * factor;
  }
  return seconds >= 1 && seconds <= 3650 * 86_400 ? seconds : undefined;
}

/** A time as text: `1h30m`. Days are written as hours, which means the same. */
function timeText(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  return parts.map(([value, unit]) => (value > 0 ? `${value}${unit}` : '')).join('');
}
