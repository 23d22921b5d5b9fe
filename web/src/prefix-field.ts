// The page's text while a pattern is typed: its meaning, how rare it is, how long it takes, and
// look-alikes for characters that cannot occur and for patterns that take long.

import { button, element, input, say } from './dom';
import { duration, odds, RARELY_MORE, type Rates } from './estimate';
import { bits, lookAlike, secondsAt } from './difficulty';
import { isPrefix, joined, meaningOf, parsePatterns, timeOf } from './patterns';
import { PatternError } from './pattern-error';

/** Above this time the page says how to make the search shorter: a month, in seconds. */
const TOO_LONG = 30 * 86_400;

const ALLOWED =
  'Lower-case letters and digits; 1, b, i and o cannot occur. Several words mean any of them. ' +
  'Also: m0?tane (any character), ~alice (look-alikes), =7 (equal ones), hex:c0de, words:8, ' +
  'best 5m (the rarest key seen in that time).';

/** The bot's speed, once it is known. */
let rates: Rates | undefined;

export function setRates(known: Rates | undefined): void {
  rates = known;
  describe();
}

/**
 * Expected seconds at the bot's speed; `undefined` where the speed or the difficulty is not known.
 * For a search without a target, its own time.
 */
export function expectedFor(patterns: readonly string[]): number | undefined {
  return timeOf(patterns) ?? (rates === undefined ? undefined : secondsAt(patterns, rates));
}

/** From this many seconds on, a look-alike that is found sooner is offered. */
const LONG = 60;

/**
 * The meanings of patterns that are more than a prefix, then the rarity and time of all patterns.
 */
function described(patterns: readonly string[]): string {
  const meant = patterns.filter((text) => !isPrefix(text)).map((text) => `${text}: ${meaningOf(text)}.`);
  return [...meant, told(patterns)].join(' ');
}

/** The cheaper look-alike of the only pattern, if that takes long. */
function cheaperThan(patterns: readonly string[]): string | undefined {
  const [only, ...more] = patterns;
  if (only === undefined || more.length > 0 || (expectedFor(patterns) ?? 0) < LONG) return undefined;
  return lookAlike(only);
}

/**
 * The rarity and the time in words: `About 1 key in 34 million fits. The bot takes about 5 seconds,
 * rarely more than 15 seconds.`
 */
function told(patterns: readonly string[]): string {
  const time = timeOf(patterns);
  if (time !== undefined) return `The bot searches for ${duration(time)} and says how rare the key is.`;
  const difficulty = bits(patterns);
  if (difficulty === undefined) return 'The bot says how rare that is, and how long it takes.';
  const rarity = `About ${odds(difficulty)} fits.`;
  const seconds = expectedFor(patterns);
  if (seconds === undefined) return rates === undefined ? rarity : `${rarity} The bot says how long that takes.`;
  if (seconds > TOO_LONG) {
    const atLeast = seconds > 3e13 ? 'more than' : 'about';
    return `${rarity} The bot takes ${atLeast} ${duration(seconds)}. Each character less is 32 times as fast.`;
  }
  if (seconds * RARELY_MORE < 1) return `${rarity} The bot takes less than a second.`;
  const mean = seconds < 1 ? 'less than a second' : `about ${duration(seconds)}`;
  return `${rarity} The bot takes ${mean}, rarely more than ${duration(seconds * RARELY_MORE)}.`;
}

/**
 * Says what the field holds. Unfinished typing is no error: only characters that can never fit
 * are.
 */
function describe(): void {
  const written = input('prefix').value;
  let text = written.trim() === '' ? ALLOWED : '';
  let problem: PatternError | undefined;
  let cheaper: string | undefined;
  if (written.trim() !== '') {
    try {
      const patterns = parsePatterns(written);
      text = described(patterns);
      cheaper = cheaperThan(patterns);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      problem = error;
    }
  }
  say('prefix-odds', text);
  say('prefix-error', problem?.message ?? '');
  input('prefix').setAttribute('aria-invalid', String(problem !== undefined));
  const instead = problem?.instead ?? (cheaper === undefined ? [] : [cheaper]);
  offer(instead, problem?.word.toLowerCase() ?? (cheaper === undefined ? '' : written.trim().toLowerCase()));
}

/** Shows a button for each text that could replace a word. */
function offer(all: readonly string[], word: string): void {
  const choices = all.map((instead) => {
    const choice = document.createElement('button');
    choice.type = 'button';
    choice.className = 'mono';
    const seconds = expectedFor([instead]);
    const time = seconds === undefined || !instead.startsWith('~') ? '' : `, ${duration(seconds)}`;
    choice.textContent = `${instead}${time}`;
    choice.setAttribute('aria-label', `Use ${instead}${time}`);
    choice.addEventListener('click', () => {
      const field = input('prefix');
      const text = joined(field.value);
      const at = text.toLowerCase().indexOf(word);
      field.value = text.slice(0, at) + instead + text.slice(at + word.length);
      describe();
      button('ask-button').focus();
    });
    return choice;
  });
  element('prefix-instead').replaceChildren(...choices);
}

/** Empties the field for another request. */
export function clearPrefix(): void {
  input('prefix').value = '';
  describe();
}

export function startPrefixField(): void {
  input('prefix').addEventListener('input', describe);
  describe();
}
