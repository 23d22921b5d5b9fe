// Errors of the grammar, each with patterns that would work.

import { ALPHABET, MAX_CHARACTERS } from './shapes';
import { Problem, sentence, type Values } from './texts';

const NEAREST: Readonly<Record<string, string>> = { '1': 'l7j', b: '86d', i: 'ljy', o: '0qu' };

/** Reads one pattern, or throws a `PatternError`. */
type Read = (text: string) => unknown;

/**
 * A word that is no pattern. Its text is that of the bot. The patterns in `instead` would work in
 * its place: each can be read.
 */
export class PatternError extends Problem {
  constructor(
    id: string,
    values: Values = {},
    readonly instead: readonly string[] = [],
    /** The word as it stands in the text, without blanks; empty where one word alone is read. */
    readonly word = '',
  ) {
    super(id, values);
    this.message = this.tell();
  }

  override tell(): string {
    return sentence(super.tell());
  }
}

export function tooLong(characters: number): PatternError {
  return new PatternError('pattern-too-long', { characters, most: MAX_CHARACTERS });
}

export function wrongWithin([instead]: readonly string[] = []): PatternError {
  if (instead === undefined) return new PatternError('pattern-within');
  return new PatternError('pattern-within-one', { first: instead }, [instead]);
}

/** The error for a start that no key has. Its first `count` characters would be possible. */
export function impossible(count: number): PatternError {
  return new PatternError('pattern-impossible', { count });
}

/**
 * The error for a character that cannot stand in a pattern. It names only patterns that can be
 * read.
 */
export function explain(text: string, strange: string, read: Read): PatternError {
  const character = strange;
  if (!(strange in NEAREST)) return new PatternError('pattern-forbidden', { character, alphabet: ALPHABET });
  // The number behind `@` is a limit, not characters of an npub.
  const limit = text.includes('@') ? text.slice(text.indexOf('@')) : '';
  const letters = [...text.slice(0, text.length - limit.length)];
  const stays = (letter: string) => ALPHABET.includes(letter) || '?[]*'.includes(letter);
  const spell = (choice: number) => letters.map((letter) => (stays(letter) ? letter : NEAREST[letter]?.[choice])).join('') + limit;
  const whole = letters.every((letter) => stays(letter) || letter in NEAREST);
  const [first, second] = whole ? [...new Set([0, 1, 2].flatMap((choice) => working(spell(choice), read)))] : [];
  const alike = `~${text}`;
  const near = [first, second].filter((one) => one !== undefined);
  const instead = [...near, ...working(alike, read).filter((works) => works === alike)];
  if (first === undefined) return new PatternError('pattern-forbidden', { character, alphabet: ALPHABET }, instead);
  if (second === undefined) return new PatternError('pattern-forbidden-one', { character, first }, instead);
  return new PatternError('pattern-forbidden-two', { character, first, second }, instead);
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
  const [first] = letters.length === places ? working(before + letters.join(''), read) : [];
  return first === undefined ? new PatternError('pattern-ending') : new PatternError('pattern-ending-one', { first }, [first]);
}
