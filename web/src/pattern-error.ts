// Errors of the grammar, each with patterns that would work.

import { ALPHABET, MAX_CHARACTERS } from './shapes';

const NEAREST: Readonly<Record<string, string>> = { '1': 'l7j', b: '86d', i: 'ljy', o: '0qu' };

/** Reads one pattern, or throws a `PatternError`. */
type Read = (text: string) => unknown;

/**
 * A word that is no pattern. The patterns in `instead` would work in its place: each can be read.
 */
export class PatternError extends Error {
  constructor(
    message: string,
    readonly instead: readonly string[] = [],
    /** The word as it stands in the text, without blanks; empty where one word alone is read. */
    readonly word = '',
  ) {
    super(message);
  }
}

export function tooLong(length: number): PatternError {
  return new PatternError(
    `${length} characters are too many: an npub has ${MAX_CHARACTERS} that can be chosen. Write fewer.`,
  );
}

export function wrongWithin([instead]: readonly string[] = []): PatternError {
  const why = '“@” follows a word between stars and says within how many characters.';
  if (instead === undefined) return new PatternError(`${why} Write *m0ct*@12, for example.`);
  return new PatternError(`${why} “${instead}” would work.`, [instead]);
}

/** The error for a start that no key has. Its first `characters` characters would be possible. */
export function impossible(characters: number): PatternError {
  return new PatternError(`No public key starts like that. Its first ${characters} characters would be possible.`);
}

/**
 * The error for a character that cannot stand in a pattern. It names only patterns that can be
 * read.
 */
export function explain(text: string, strange: string, read: Read): PatternError {
  const shown = `“${strange}” cannot occur in an npub`;
  if (!(strange in NEAREST)) return new PatternError(`${shown}. Use the characters ${ALPHABET}.`);
  // The number behind `@` is a limit, not characters of an npub.
  const limit = text.includes('@') ? text.slice(text.indexOf('@')) : '';
  const letters = [...text.slice(0, text.length - limit.length)];
  const stays = (letter: string) => ALPHABET.includes(letter) || '?[]*'.includes(letter);
  const spell = (choice: number) => letters.map((letter) => (stays(letter) ? letter : NEAREST[letter]?.[choice])).join('') + limit;
  const whole = letters.every((letter) => stays(letter) || letter in NEAREST);
  const why = `${shown}: the letters 1, b, i and o are left out of its alphabet because they are easily misread.`;
  const near = whole ? [0, 1, 2].flatMap((choice) => working(spell(choice), read)).slice(0, 2) : [];
  const alike = `~${text}`;
  const instead = [...near, ...working(alike, read).filter((works) => works === alike)];
  const choice = near.map((each) => `“${each}”`).join(' or ');
  return new PatternError(near.length === 0 ? why : `${why} ${choice} would work.`, instead);
}

/** The text if it is a pattern, else the first pattern that its error names instead, if any. */
export function working(text: string, read: Read): string[] {
  try {
    read(text);
    return [text];
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    return error.instead.slice(0, 1);
  }
}

/** The error for an ending of `places` characters whose seventh from the end cannot be there. */
export function wrongEnding(before: string, end: string, places: number, read: Read): PatternError {
  const letters = [...end];
  // With a class like `[s5]` the text has more characters than places. Then no spelling is named.
  letters[letters.length - 7] = 's';
  const nearest = letters.length === places ? working(before + letters.join(''), read) : [];
  const why = 'The seventh character from the end is always q or s.';
  const how = nearest.length === 0 ? 'Write one of them there.' : `“${nearest[0]}” would work.`;
  return new PatternError(`${why} ${how}`, nearest);
}
