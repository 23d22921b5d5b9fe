// What the page says while a prefix is typed: how rare it is, how long it takes, and look-alikes
// for what cannot occur.

import { button, element, input, say } from './dom';
import { duration, odds, RARELY_MORE } from './estimate';
import { bits, parsePatterns, PatternError } from './patterns';

/** Beyond this the page says how to make it shorter: a month, in seconds. */
const TOO_LONG = 30 * 86_400;

const ALLOWED = 'Lower-case letters and digits; 1, b, i and o cannot occur. Several words mean any of them.';

/** Candidates a second, once the bot is known. */
let rate: number | undefined;

export function setRate(known: number | undefined): void {
  rate = known;
  describe();
}

/** Expected seconds at the bot's speed; `undefined` where it is not known. */
export function expectedFor(patterns: readonly string[]): number | undefined {
  return rate === undefined ? undefined : 2 ** bits(patterns) / rate;
}

/** `About 1 key in 34 million fits. The bot takes about 5 seconds, rarely more than 15 seconds.` */
function told(patterns: readonly string[]): string {
  const rarity = `About ${odds(bits(patterns))} fits.`;
  const seconds = expectedFor(patterns);
  if (seconds === undefined) return rarity;
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
  if (written.trim() !== '') {
    try {
      text = told(parsePatterns(written));
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      problem = error;
    }
  }
  say('prefix-odds', text);
  say('prefix-error', problem?.message ?? '');
  input('prefix').setAttribute('aria-invalid', String(problem !== undefined));
  offer(problem);
}

function offer(problem: PatternError | undefined): void {
  const choices = (problem?.instead ?? []).map((instead) => {
    const choice = document.createElement('button');
    choice.type = 'button';
    choice.className = 'mono';
    choice.textContent = instead;
    choice.setAttribute('aria-label', `Use ${instead}`);
    choice.addEventListener('click', () => {
      const field = input('prefix');
      // The word as it was written may have npub1 before it, and other case.
      const at = field.value.toLowerCase().indexOf(problem?.word ?? '');
      field.value = field.value.slice(0, at) + instead + field.value.slice(at + (problem?.word.length ?? 0));
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
