// Prefixes: the characters that follow `npub1`.

export const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';

/** Characters of an npub that say something about the key; the six behind them are a checksum. */
export const MAX_CHARACTERS = 52;

const FIELD = 2n ** 256n - 2n ** 32n - 977n;

const NEAREST: Readonly<Record<string, string>> = { '1': 'l7j', b: '86d', i: 'ljy', o: '0qu' };

/** A word that is no prefix, with words that would work in its place. */
export class PatternError extends Error {
  constructor(
    message: string,
    readonly word = '',
    readonly instead: readonly string[] = [],
  ) {
    super(message);
  }
}

/** Reads one pattern. Upper case, a leading `nostr:`, `/` or `npub1` are forgiven. */
export function parsePattern(written: string): string {
  const text = written
    .trim()
    .toLowerCase()
    .replace(/^nostr:/, '')
    .replace(/^\/+/, '')
    .replace(/^npub1/, '');
  if (text === '') {
    throw new PatternError(`There is no prefix in it. Write 1 to ${MAX_CHARACTERS} of the characters ${ALPHABET}.`);
  }
  const letters = [...text];
  const strange = letters.find((letter) => !ALPHABET.includes(letter));
  if (strange !== undefined) throw explain(text, strange);
  if (letters.length > MAX_CHARACTERS) {
    throw new PatternError(
      `${letters.length} characters are too many: an npub has ${MAX_CHARACTERS} that can be chosen. Write fewer.`,
    );
  }
  if (!possible(text)) throw new PatternError('No public key starts like that. Leave out the last character.');
  return text;
}

/** Reads several patterns, separated by blanks, commas or line breaks; each is kept once. */
export function parsePatterns(written: string): string[] {
  const words = written.split(/[\s,;]+/).filter((word) => word !== '');
  if (words.length === 0) throw new PatternError('No prefix yet. Write what should follow npub1, for example m0ctane.');
  return [...new Set(words.map(parsePattern))];
}

/** Whether the npub starts with one of the patterns. */
export function matches(npub: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => npub.startsWith(`npub1${pattern}`));
}

/** Candidates that have to be tried on average, as a power of two. */
export function bits(patterns: readonly string[]): number {
  const chance = patterns.reduce((sum, pattern) => sum + 2 ** -Math.min(5 * pattern.length, 256), 0);
  return -Math.log2(chance);
}

function explain(text: string, strange: string): PatternError {
  const shown = `“${strange}” cannot occur in an npub`;
  if (!(strange in NEAREST)) return new PatternError(`${shown}. Use the characters ${ALPHABET}.`, text);
  const spell = (choice: number) =>
    [...text].map((letter) => (ALPHABET.includes(letter) ? letter : NEAREST[letter]?.[choice])).join('');
  const whole = [...text].every((letter) => ALPHABET.includes(letter) || letter in NEAREST);
  const why = `${shown}: the letters 1, b, i and o are left out of its alphabet because they are easily misread.`;
  if (!whole) return new PatternError(why, text);
  const instead = [spell(0), spell(1)];
  return new PatternError(`${why} “${instead[0]}” or “${instead[1]}” would work.`, text, instead);
}

/**
 * The 52nd character holds one bit of the key and four of padding, and x is below the field's
 * prime.
 */
function possible(text: string): boolean {
  const value = [...text].reduce((sum, letter) => sum * 32n + BigInt(ALPHABET.indexOf(letter)), 0n);
  const spare = 256 - 5 * text.length;
  if (spare >= 0) return value << BigInt(spare) < FIELD;
  return (value & 15n) === 0n && value >> 4n < FIELD;
}
