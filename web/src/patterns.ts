// Patterns: what an npub may be asked to look like. The grammar is that of `miner/src/pattern/`
// (docs/askers/patterns.md), and tests/patterns.json holds both to the same answers.

import { asksForBest, readBest } from './best';
import { explain, impossible, PatternError, tooLong, working, wrongEnding, wrongWithin } from './pattern-error';
import {
  ALPHABET,
  ANY,
  chanceOfStarts,
  charactersOf,
  MAX_CHARACTERS,
  NPUB_CHARACTERS,
  placesOf,
  possibleCharacters,
  possibleShapes,
  setText,
  starting,
  type Characters,
  type Shape,
} from './shapes';
import { tell } from './texts';
import { ENGLISH, JAPANESE } from './words';

/** The most characters that can be chosen if a part is elsewhere than at the start. */
const MOST_CHOSEN = 46;
/**
 * Up to this many possible places of a part, the pattern becomes one alternative for each place.
 */
const FEW_PLACES = 3;

/** A pattern: its text and its meaning. An npub fits it if it has one of its shapes. */
export interface Pattern {
  readonly text: string;
  /** Tells the meaning in the language of now. */
  readonly meaning: () => string;
  readonly shapes: readonly Shape[];
  /** The time of a search without a target, in seconds. */
  readonly seconds?: number;
}

/** Reads one pattern. Upper case, a leading `nostr:`, `/` or `npub1` are forgiven. */
export function readPattern(written: string): Pattern {
  const text = written
    .trim()
    .toLowerCase()
    .replace(/^nostr:/, '')
    .replace(/^\/+/, '')
    .replace(/^npub1/, '');
  if (text.startsWith('hex:')) return hex(text.slice(4));
  if (text.startsWith('zeros:')) return zeros(text.slice(6));
  if (text.startsWith('=')) return equal(text.slice(1));
  if (text === 'words') return words(5);
  if (text.startsWith('words:')) return words(number('words:', text.slice(6), 4, 9, 8));
  if (asksForBest(text)) return best(text);
  if (/[?[\]*~@]/.test(text)) return ofParts(text);
  return prefix(text);
}

const once = new Map<string, Pattern>();

/** The pattern of a text that was read before, or is read now. */
export function known(text: string): Pattern {
  const read = once.get(text) ?? readPattern(text);
  if (once.size > 100) once.clear();
  once.set(text, read);
  return read;
}

/** Reads one pattern and returns its canonical text. */
export function parsePattern(written: string): string {
  return readPattern(written).text;
}

/**
 * Reads several patterns, separated by blanks, commas or line breaks; each is kept once. A search
 * without a target stands alone.
 */
export function parsePatterns(written: string): string[] {
  if (asksForBest(written)) return [parsePattern(written)];
  const parts = joined(written).split(/[\s,;]+/).filter((word) => word !== '');
  if (parts.length === 0) throw new PatternError('no-pattern');
  return [...new Set(parts.map(named))];
}

/** A text without the blanks behind `hex:` and `=`, which change nothing. */
export function joined(written: string): string {
  return written.replace(/(hex:|zeros:|words:)\s+/gi, '$1').replace(/(^|\s)=\s+(?=\d)/g, '$1=');
}

/** Reads one of several words. An error holds the word. */
function named(word: string): string {
  try {
    return parsePattern(word);
  } catch (error) {
    throw error instanceof PatternError ? new PatternError(error.id, error.values, error.instead, word) : error;
  }
}

/** The meaning of a pattern, in words. */
export function meaningOf(text: string): string {
  return known(text).meaning();
}

/** Whether a text is a plain start of an npub. */
export function isPrefix(text: string): boolean {
  return [...text].every((letter) => ALPHABET.includes(letter));
}

/** A pattern as a sentence names it: `npub1m0ctane`, `~alice`. */
export function nameOf(text: string): string {
  return /[~*=:]/.test(text) || asksForBest(text) ? text : `npub1${text}`;
}

/** The time of a search without a target, in seconds; `undefined` for one with a target. */
export function timeOf(patterns: readonly string[]): number | undefined {
  return patterns.map((text) => known(text).seconds).find((seconds) => seconds !== undefined);
}

/** Whether the npub has one of the patterns. */
export function matches(npub: string, patterns: readonly string[]): boolean {
  return chosenPlaces(npub, patterns) !== undefined;
}

/** The places after `npub1` whose characters one of the patterns chose; `undefined` if it has none. */
export function chosenPlaces(npub: string, patterns: readonly string[]): number[] | undefined {
  const values = [...npub.slice(5)].map((letter) => ALPHABET.indexOf(letter));
  for (const shape of patterns.flatMap((text) => known(text).shapes)) {
    const places = placesOf(values, shape);
    if (places !== undefined) return places;
  }
  return undefined;
}

function made(text: string, meaning: () => string, shapes: readonly Shape[]): Pattern {
  const possible = possibleShapes(shapes);
  if (possible.length === 0) throw impossible(Math.max(...shapes.map(({ start }) => possibleCharacters(start))));
  const all = possible.every((shape) => shape.middle.length === 0 && shape.end.length === 0);
  if (all && chanceOfStarts(possible.map((shape) => shape.start)) >= 1) {
    throw new PatternError('pattern-anything');
  }
  return { text, meaning, shapes: possible };
}

/** A search without a target, which every key fits. */
function best(text: string): Pattern {
  const found = readBest(text);
  if (found === undefined) {
    throw new PatternError('pattern-best');
  }
  return { ...found, shapes: [starting([])] };
}

function prefix(text: string): Pattern {
  if (text === '') {
    throw new PatternError('pattern-empty', { most: MAX_CHARACTERS, alphabet: ALPHABET });
  }
  const letters = [...text];
  const strange = letters.find((letter) => !ALPHABET.includes(letter));
  if (strange !== undefined) throw explain(text, strange, readPattern);
  if (letters.length > MAX_CHARACTERS) throw tooLong(letters.length);
  const shapes = possibleShapes([starting(letters.map((letter) => charactersOf(letter, false)))]);
  if (shapes.length === 0) {
    throw impossible(possibleCharacters(letters.map((letter) => charactersOf(letter, false))));
  }
  return { text, meaning: () => tell('meaning-start', { text }), shapes };
}

/** A number in a range. `example` is one that works; `after` is what stands behind the number. */
function number(keyword: string, text: string, least: number, most: number, example: number, after = ''): number {
  const nearest = nearestNumber(text, least, most);
  if (text === String(nearest)) return Number(text);
  const range = { keyword, least, most };
  if (nearest === undefined) throw new PatternError('pattern-number', { ...range, example: `${keyword}${example}${after}` });
  const instead = `${keyword}${nearest}${after}`;
  throw new PatternError('pattern-number-nearest', { ...range, nearest: instead }, [instead]);
}

/** The number from `least` to `most` that is nearest to a text of digits. */
function nearestNumber(text: string, least: number, most: number): number | undefined {
  return /^\+?\d+$/.test(text) ? Math.max(Math.min(Number(text), most), least) : undefined;
}

/**
 * The sets of characters that the first `length` bits of a key fill. `bit` returns `undefined` for
 * a free bit.
 */
function ofBits(length: number, bit: (at: number) => boolean | undefined): Characters[] {
  const fits = (at: number, value: number) =>
    [0, 1, 2, 3, 4].every((place) => {
      const fixed = bit(5 * at + place);
      return fixed === undefined || fixed === (((value >> (4 - place)) & 1) === 1);
    });
  const set = (at: number) => {
    let all = 0;
    for (let value = 0; value < 32; value += 1) if (fits(at, value)) all |= 1 << value;
    return all >>> 0;
  };
  return Array.from({ length: Math.ceil(length / 5) }, (_, at) => set(at));
}

function hex(text: string): Pattern {
  const atTheEnd = text.startsWith('*');
  const digits = atTheEnd ? text.slice(1) : text;
  if (!/^[0-9a-f]+$/.test(digits)) throw noHex(probableHex(text));
  if (digits.length > 64) {
    throw new PatternError('pattern-hex-too-long', { most: 64, digits: digits.length, more: digits.length - 64 });
  }
  const skipped = atTheEnd ? 64 - digits.length : 0;
  const bit = (at: number) => {
    const digit = digits[Math.floor(at / 4) - skipped];
    return digit === undefined ? undefined : ((parseInt(digit, 16) >> (3 - (at % 4))) & 1) === 1;
  };
  const meaning = () => tell(atTheEnd ? 'meaning-hex-end' : 'meaning-hex-start', { text: digits });
  return made(`hex:${text}`, meaning, [starting(ofBits(4 * (skipped + digits.length), bit))]);
}

/**
 * The pattern that is probably meant by digits as people write them elsewhere: `0xdead`, `de:ad`,
 * `c0ffee` with an `o`.
 */
function probableHex(text: string): string {
  const [, star = '', digits = ''] = /^(\*?)(?:0x)?(.*?)\*?$/.exec(text.replace(/[_\-:.]/g, '')) ?? [];
  return `hex:${star}${digits.replace(/o/g, '0').replace(/[il]/g, '1')}`;
}

function noHex(probable: string): PatternError {
  // As in the bot, an error repeats no whole key.
  const [instead] = /^hex:\*?[0-9a-f]{1,63}$/.test(probable) ? working(probable, readPattern) : [];
  return instead === undefined ? new PatternError('pattern-hex') : new PatternError('pattern-hex-one', { first: instead }, [instead]);
}

function zeros(text: string): Pattern {
  const length = number('zeros:', text, 1, 255, 40);
  const shape = starting(ofBits(length, (at) => (at < length ? false : undefined)));
  return made(`zeros:${length}`, () => tell('meaning-zeros', { count: length }), [shape]);
}

function equal(text: string): Pattern {
  const each = Array.from({ length: 32 }, (_, value) => (1 << value) >>> 0);
  if (text.endsWith('*')) {
    const length = number('=', text.slice(0, -1), 2, 12, 7, '*');
    const anywhere = each.map((set) => ({ ...starting([]), middle: [Array<Characters>(length).fill(set)] }));
    return made(`=${length}*`, () => tell('meaning-equal-anywhere', { count: length }), anywhere);
  }
  const length = number('=', text, 2, 51, 7);
  const meaning = () => tell('meaning-equal', { count: length });
  return made(`=${length}`, meaning, each.map((set) => starting(Array<Characters>(length).fill(set))));
}

/**
 * The pattern of all words of the list with at least `length` letters. A letter that cannot occur
 * stands for its look-alikes, all others for themselves.
 */
function words(length: number): Pattern {
  const set = (letter: string) => charactersOf(letter, !ALPHABET.includes(letter));
  const long = [...new Set(`${ENGLISH} ${JAPANESE}`.split(' ').filter((word) => word.length >= length))];
  const meaning = () => tell('meaning-words', { count: length });
  return made(`words:${length}`, meaning, long.map((word) => starting([...word].map(set))));
}

interface Part {
  readonly text: string;
  readonly sets: readonly Characters[];
}

/** Reads a pattern of parts, divided by stars; a leading `~` makes every letter a look-alike. */
function ofParts(text: string): Pattern {
  const alike = text.startsWith('~');
  const [body = '', ...behind] = (alike ? text.slice(1) : text).split('@');
  const limit = behind.length === 0 ? undefined : behind.join('@');
  if (limit !== undefined && !(body.endsWith('*') && body.split('*').length > 2)) throw wrongWithin();
  const parts = body.split('*').map((part) => readPart(part, alike, text));
  const start = parts.shift() ?? { text: '', sets: [] };
  const end = parts.pop() ?? { text: '', sets: [] };
  const middle = parts.filter((part) => part.sets.length > 0);
  const mark = alike ? '~' : '';
  if (middle.length === 0 && end.sets.length === 0) {
    if (limit !== undefined) throw wrongWithin();
    return ofStart(mark, start);
  }
  const least = [start, ...middle].flatMap((part) => part.sets).length;
  const nearest = limit === undefined ? undefined : nearestNumber(limit, Math.min(least, NPUB_CHARACTERS), NPUB_CHARACTERS);
  if (limit !== undefined && (limit !== String(nearest) || least > NPUB_CHARACTERS)) {
    throw wrongWithin(nearest === undefined ? [] : working(`${mark}${body}@${nearest}`, readPattern));
  }
  const within = nearest;
  const shape = {
    start: start.sets,
    middle: middle.map((part) => part.sets),
    within: within ?? NPUB_CHARACTERS,
    end: end.sets,
  };
  if (least + shape.end.length > MOST_CHOSEN) {
    throw new PatternError('pattern-too-many', { characters: least + shape.end.length, most: MOST_CHOSEN });
  }
  const before = `${mark}${start.text}${middle.map((part) => `*${part.text}`).join('')}*`;
  const written = before + end.text;
  if (possibleShapes([shape]).length === 0) throw wrongEnding(before, end.text, end.sets.length, readPattern);
  const meaning = () => meaningOfParts(alike, start.text, middle.map((part) => part.text), within, end.text);
  return made(within === undefined ? written : `${written}@${within}`, meaning, alternatives(shape));
}

function meaningOfParts(alike: boolean, start: string, middle: readonly string[], count: number | undefined, end: string): string {
  const part = (text: string) => (alike ? tell('spelling', { text }) : text);
  const said: string[] = [];
  if (start !== '') said.push(tell(alike ? 'meaning-alike' : 'meaning-start', { text: start }));
  for (const text of middle) {
    const from = said.length > 0 ? 'start' : 'npub';
    said.push(count === undefined ? tell('meaning-middle', { text: part(text), from }) : tell('meaning-within', { text: part(text), count }));
  }
  if (end !== '') said.push(tell('meaning-end', { text: part(end) }));
  return [...said, ...openPlaces(start + middle.join('') + end)].join(tell('comma'));
}

function openPlaces(text: string): string[] {
  return [...(text.includes('?') ? [tell('open-place')] : []), ...(text.includes('[') ? [tell('one-of')] : [])];
}

/** A pattern of characters at the start alone. */
function ofStart(mark: string, start: Part): Pattern {
  if (start.sets.length === 0) throw new PatternError('pattern-anything');
  if (start.sets.length > MAX_CHARACTERS) throw tooLong(start.sets.length);
  if (mark === '' && isPrefix(start.text)) return prefix(start.text);
  const meaning = () => meaningOfParts(mark !== '', start.text, [], undefined, '');
  return made(`${mark}${start.text}`, meaning, [starting(start.sets)]);
}

function readPart(text: string, alike: boolean, whole: string): Part {
  const sets: Characters[] = [];
  let written = '';
  const one = (letter: string): Characters => {
    const set = charactersOf(letter, alike);
    if (set === 0) throw alike ? new PatternError('pattern-forbidden', { character: letter, alphabet: ALPHABET }) : explain(whole, letter, readPattern);
    return set;
  };
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? '';
    if (letter === '?') {
      sets.push(ANY);
      written += '?';
    } else if (letter === '[' || letter === ']') {
      const close = text.indexOf(']', at);
      const inside = text.slice(at + 1, close);
      if (letter === ']' || close < 0 || inside === '' || /[[?]/.test(inside)) {
        throw new PatternError('pattern-class');
      }
      const set = [...inside].reduce((all, each) => all | one(each), 0) >>> 0;
      sets.push(set);
      written += alike ? `[${inside}]` : setText(set);
      at = close;
    } else {
      sets.push(one(letter));
      written += letter;
    }
  }
  return { text: written, sets };
}

/** The shape, or one alternative for each place of a part within the first few characters. */
function alternatives(shape: Shape): Shape[] {
  const [part] = shape.middle;
  const places = shape.within + 1 - shape.start.length - (part?.length ?? 0);
  if (part === undefined || shape.middle.length > 1 || shape.end.length > 0 || places > FEW_PLACES) return [shape];
  return Array.from({ length: places }, (_, open) =>
    starting([...shape.start, ...Array<Characters>(open).fill(ANY), ...part]),
  );
}
