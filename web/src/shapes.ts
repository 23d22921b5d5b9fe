// Shapes: sets of characters at the start of an npub, anywhere in it, or at its end; and the chance
// that a random key has one.

export const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';

/** Characters of an npub that say something about the key; the six behind them are a checksum. */
export const MAX_CHARACTERS = 52;

/** All characters behind `npub1`. */
export const NPUB_CHARACTERS = 58;
/** Place of the last character of the key. It holds one bit of the key and four zero bits. */
const LAST_OF_KEY = 51;

const FIELD = 2n ** 256n - 2n ** 32n - 977n;

/**
 * The characters that people read as a letter or digit. Letters not listed stand for themselves.
 */
const ALIKE: Readonly<Record<string, string>> = {
  '0': '0', o: '0', '1': 'l', '2': '2z', '3': '3e', '4': '4a', '5': '5s', '7': '7t', '9': '9g',
  a: 'a4', b: '86', e: 'e3', g: 'g9', i: 'lj', s: 's5', t: 't7', u: 'uv', v: 'vu', z: 'z2',
};

/** Characters that may stand at one place: a bit for each, by its place in the alphabet. */
export type Characters = number;

export const ANY: Characters = 0xffffffff;
/** The only characters possible at the last place of the key: `q` and `s`. */
const PADDED: Characters = (1 << 0) | (1 << 16);

/** Characters at the start, parts anywhere behind it, characters at the end. */
export interface Shape {
  readonly start: readonly Characters[];
  readonly middle: readonly (readonly Characters[])[];
  readonly within: number;
  readonly end: readonly Characters[];
}

export const starting = (start: readonly Characters[]): Shape => ({ start, middle: [], within: NPUB_CHARACTERS, end: [] });

/** The characters that one letter or digit stands for; none if it cannot occur. */
export function charactersOf(letter: string, alike: boolean): Characters {
  const all = alike ? (ALIKE[letter] ?? letter) : letter;
  return [...all].reduce((set, one) => (ALPHABET.includes(one) ? set | (1 << ALPHABET.indexOf(one)) : set), 0) >>> 0;
}

function count(set: Characters): number {
  let bits = 0;
  for (let rest = set; rest !== 0; rest = (rest & (rest - 1)) >>> 0) bits += 1;
  return bits;
}

/** The shapes that some key can have. */
export function possibleShapes(shapes: readonly Shape[]): Shape[] {
  const padded = (sets: readonly Characters[], at: number): readonly Characters[] =>
    sets.map((set, place) => (place === at ? (set & PADDED) >>> 0 : set));
  return shapes
    .map((shape) => ({
      ...shape,
      start: padded(shape.start, LAST_OF_KEY),
      end: padded(shape.end, LAST_OF_KEY - (NPUB_CHARACTERS - shape.end.length)),
    }))
    .filter(({ start, middle, end }) => [start, ...middle, end].flat().every((set) => set !== 0) && fitsField(start));
}

/** A start is possible if the smallest x with it is below the field's prime. */
function fitsField(start: readonly Characters[]): boolean {
  if (start.length > MAX_CHARACTERS) return false;
  const smallest = start.reduce((sum, set) => sum * 32n + BigInt(31 - Math.clz32(set & -set)), 0n);
  const spare = 256 - 5 * start.length;
  return (spare >= 0 ? smallest << BigInt(spare) : smallest >> BigInt(-spare)) < FIELD;
}

/** The largest number of first characters of `start`, fewer than all, that some key has. */
export function possibleCharacters(start: readonly Characters[]): number {
  let count = start.length - 1;
  while (!fitsField(start.slice(0, count))) count -= 1;
  return count;
}

/** A set as text: one character as it is, all as `?`, several as `[5s]`. */
export function setText(set: Characters): string {
  const letters = [...ALPHABET].filter((_, at) => ((set >>> at) & 1) === 1).sort();
  if (letters.length === 1) return letters[0] ?? '';
  return letters.length === 32 ? '?' : `[${letters.join('')}]`;
}

/** The places at which the characters of an npub meet a shape; `undefined` if they do not. */
export function placesOf(values: readonly number[], { start, middle, within, end }: Shape): number[] | undefined {
  const fits = (part: readonly Characters[], from: number) =>
    part.every((set, at) => (((set >>> (values[from + at] ?? 0)) & 1) === 1));
  const chosen = (part: readonly Characters[], from: number) => part.flatMap((set, at) => (set === ANY ? [] : [from + at]));
  const endFrom = NPUB_CHARACTERS - end.length;
  if (!fits(start, 0) || !fits(end, endFrom)) return undefined;
  const places = [...chosen(start, 0), ...chosen(end, endFrom)];
  let from = start.length;
  const to = Math.min(within, endFrom);
  for (const part of middle) {
    while (from + part.length <= to && !fits(part, from)) from += 1;
    if (from + part.length > to) return undefined;
    places.push(...chosen(part, from));
    from += part.length;
  }
  return places;
}

/** The most characters of a middle part that the bot's quick tests compare. */
const COMPARED = 8;

/**
 * The approximate share of random keys that pass the bot's quick test of whole keys for a shape.
 */
export function passingOf({ start, middle, within, end }: Shape): number {
  const bits = (sets: readonly Characters[]) => sets.reduce((sum, set) => sum + commonBits(set), 0);
  const fixed = 2 ** -(bits(start) + bits(end));
  // The middle part that is hardest to meet; of several such parts, the last.
  const hardest = middle.reduce<readonly Characters[]>((most, part) => (bits(part) >= bits(most) ? part : most), []);
  if (middle.length === 0) return fixed;
  const places = Math.min(within, NPUB_CHARACTERS - end.length) - hardest.length - start.length + 1;
  return fixed * Math.min(1, places / 2 ** bits(hardest.slice(0, COMPARED)));
}

/** The number of bits that are the same in all characters of a set. */
function commonBits(set: Characters): number {
  const values = Array.from({ length: 32 }, (_, value) => value).filter((value) => ((set >>> value) & 1) === 1);
  const all = values.reduce((bits, value) => bits & value, 31);
  const any = values.reduce((bits, value) => bits | value, 0);
  return count((31 & ~(all ^ any)) >>> 0);
}

/**
 * The chance, 0 to 1, that a random key has one of these starts. Characters are independent, so it
 * is summed place by place over the starts that still fit.
 */
export function chanceOfStarts(starts: readonly (readonly Characters[])[]): number {
  let met = 0;
  let layer = new Map<string, { fitting: readonly number[]; chance: number }>();
  const enter = (fitting: readonly number[], chance: number, at: number, into: typeof layer) => {
    if (fitting.some((one) => starts[one]?.length === at)) {
      met += chance;
    } else if (fitting.length > 0) {
      const name = fitting.join();
      into.set(name, { fitting, chance: chance + (into.get(name)?.chance ?? 0) });
    }
  };
  enter(starts.map((_, at) => at), 1, 0, layer);
  for (let at = 0; layer.size > 0; at += 1) {
    const possible = possibleAt(at);
    const next: typeof layer = new Map();
    for (const { fitting, chance } of layer.values()) {
      for (const kind of kindsOf(possible, fitting.map((one) => starts[one]?.[at] ?? 0))) {
        const still = fitting.filter((one) => ((starts[one]?.[at] ?? 0) & kind) !== 0);
        enter(still, chance * partOf(kind, possible), at + 1, next);
      }
    }
    layer = next;
  }
  return met;
}

/** The characters that a key can have at a place. */
export function possibleAt(place: number): Characters {
  return place === LAST_OF_KEY ? PADDED : ANY;
}

/** The number of `some` characters, as a share of the possible ones. */
export function partOf(some: Characters, possible: Characters): number {
  return count(some) / count(possible);
}

/** Divides the possible characters into groups. Each set has all characters of a group or none. */
export function kindsOf(possible: Characters, sets: readonly Characters[]): Characters[] {
  let kinds = [possible];
  for (const set of new Set(sets)) {
    kinds = kinds.flatMap((kind) => [(kind & set) >>> 0, (kind & ~set) >>> 0]).filter((kind) => kind !== 0);
  }
  return kinds;
}
