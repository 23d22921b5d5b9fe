// The page's text while a pattern is typed: its meaning, how rare it is, how long it takes, and other
// patterns for characters that cannot occur and for what takes too long.

import { button, element, input, say } from './dom';
import { duration, odds, takes, type Rates } from './estimate';
import { bits, lookAlike, secondsAt } from './difficulty';
import { isPrefix, joined, meaningOf, nameOf, parsePatterns, timeOf } from './patterns';
import { PatternError } from './pattern-error';
import { tell } from './texts';

/** The bot's speed and limit, once they are known. */
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

/** Whether this bot refuses the patterns, because they take longer than its limit. */
export function takesTooLong(patterns: readonly string[]): boolean {
  return timeOf(patterns) === undefined && (expectedFor(patterns) ?? 0) > (rates?.longest ?? Infinity);
}

/** The patterns to offer instead of the only one: a look-alike found sooner, a start that fits. */
function cheaperThan(patterns: readonly string[]): string[] {
  const [only, ...more] = patterns;
  if (only === undefined || more.length > 0 || (expectedFor(patterns) ?? 0) < LONG) return [];
  const alike = lookAlike(only);
  const instead = alike === undefined ? [] : [alike];
  if (!takesTooLong(patterns)) return instead;
  const starts = isPrefix(only.replace(/^~/, '')) ? [...only].map((_, at) => only.slice(0, -1 - at)) : [];
  const shorter = starts.find((start) => !/^~?$/.test(start) && !takesTooLong([start]));
  return [...instead, ...(shorter === undefined ? [] : [shorter])].filter((one) => !takesTooLong([one]));
}

/** The meanings of patterns that are more than a prefix, in sentences. */
export function meanings(patterns: readonly string[]): string[] {
  const more = patterns.filter((text) => !isPrefix(text));
  return more.map((text) => tell('means', { pattern: nameOf(text), meaning: meaningOf(text) }));
}

/** The rarity and the time of patterns in words. */
function described(patterns: readonly string[], offers: number): string {
  const time = timeOf(patterns);
  const seconds = expectedFor(patterns);
  const difficulty = bits(patterns);
  const said = meanings(patterns);
  if (time !== undefined) return [...said, tell('best-time', { span: duration(time) })].join(' ');
  if (takesTooLong(patterns) && seconds !== undefined) {
    const values = { span: duration(seconds), limit: duration(rates?.longest ?? 0) };
    return [...said, tell(offers > 0 ? 'too-long-fits' : 'too-long', values)].join(' ');
  }
  if (difficulty === undefined) return [...said, tell('rarity-later')].join(' ');
  const taken = seconds !== undefined ? takes(seconds) : rates === undefined ? '' : tell('time-later');
  return [...said, odds(difficulty), taken].filter((text) => text !== '').join(' ');
}

/**
 * Says what the field holds. Unfinished typing is no error: only characters that can never fit
 * are.
 */
export function describe(): void {
  const written = input('prefix').value;
  let problem: PatternError | undefined;
  let patterns: readonly string[] = [];
  if (written.trim() !== '') {
    try {
      patterns = parsePatterns(written);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      problem = error;
    }
  }
  const instead = problem?.instead ?? cheaperThan(patterns);
  say('prefix-odds', () => (patterns.length === 0 ? (problem === undefined ? tell('characters-help') : '') : described(patterns, instead.length)));
  say('prefix-error', () => problem?.tell() ?? '');
  input('prefix').setAttribute('aria-invalid', String(problem !== undefined));
  button('ask-button').disabled = takesTooLong(patterns);
  offer(instead, problem?.word.toLowerCase() ?? written.trim().toLowerCase());
}

/** Shows a button for each text that could replace a word. */
function offer(all: readonly string[], word: string): void {
  const choices = all.map((instead) => {
    const choice = document.createElement('button');
    choice.type = 'button';
    choice.className = 'mono';
    const seconds = expectedFor([instead]);
    const time = seconds === undefined || takesTooLong([instead]) ? '' : `, ${duration(seconds)}`;
    choice.textContent = `${instead}${time}`;
    choice.ariaLabel = `${tell('use', { pattern: instead })}${time}`;
    choice.addEventListener('click', () => {
      const field = input('prefix');
      const text = joined(field.value);
      const at = Math.max(0, text.toLowerCase().indexOf(word));
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
  // The bot's list of patterns, without the sentences around it.
  say('patterns-list', () => [...tell('kinds', {}, '\n').split('\n').slice(1, -2), tell('several-help')].join('\n'));
  describe();
}
