// Both steps by hand: make a half and a message to send, and combine the half with the bot's
// answer. Works offline.

import { area, attempt, attemptSlowly, chosenFile, copies, download, element, fileName, goTo, input, onClick, onSubmit, say, show } from './dom';
import { chanceAfter, odds } from './estimate';
import { decrypted, encrypted, LARGEST_FILE } from './keep';
import { halfText, parseHalf, pointHex, pointOf, randomHalf } from './key';
import { forgetKey, losesKey, mayDropKey, showKey } from './key-card';
import { parseLink } from './link';
import { mine, type Mining } from './mining';
import { bits } from './difficulty';
import { isPrefix, meaningOf, parsePatterns } from './patterns';
import { qrOf } from './qr';
import { splitMessage } from './request';
import { combine, parseTweak } from './tweak';
import { MOST_BITS, workTarget, workText, workWanted } from './work';

/** Whether a half was made here, and its owner has not confirmed that it is kept. */
let unkept = false;

export function losesHalf(): boolean {
  return unkept;
}

function ask(): void {
  const patterns = parsePatterns(input('patterns').value);
  if (unkept && !confirm('You have not kept the half made before. Replace it? An answer to it would be lost.')) return;
  const half = randomHalf();
  const message = splitMessage(half, patterns);
  area('half-made').value = halfText(half);
  stopWork();
  area('work-answer').value = '';
  say('work-said', '');
  asked = patterns;
  showMessage(message);
  input('kept').checked = false;
  input('asked-for').value = patterns.join(' ');
  for (const id of ['half-said', 'half-saved', 'half-error']) say(id, '');
  say('rarity', rarityOf(patterns));
  say('message-said', '');
  show('send', false);
  show('made', true);
  unkept = true;
  goTo('half-title');
}

/**
 * The rarity in words: `About 1 key in 34 million starts like that.` Before it stand the meanings
 * of patterns that are more than a prefix.
 */
function rarityOf(patterns: readonly string[]): string {
  const difficulty = bits(patterns);
  const fits = patterns.every(isPrefix) ? 'starts like that' : 'fits';
  const rare = difficulty === undefined ? 'The bot says how rare that is.' : `About ${odds(difficulty)} ${fits}.`;
  const meant = patterns.filter((text) => !isPrefix(text)).map((text) => `${text}: ${meaningOf(text)}.`);
  return [...meant, rare].join(' ');
}

function showMessage(message: string): void {
  area('message').value = message;
  element('qr').replaceChildren(qrOf(message, 'QR code of the message'));
}

/** The patterns of the message made here. */
let asked: readonly string[] = [];

/** The proof of work under way. */
let mining: Mining | undefined;
let drawing: ReturnType<typeof setInterval> | undefined;

function stopWork(): void {
  mining?.stop();
  mining = undefined;
  clearInterval(drawing);
  show('work-stop', false);
}

/** Does the work that the bot's refusal asks for, and adds it to the message. */
function work(): void {
  const answer = area('work-answer').value;
  // The leading blank lets the text begin with `--work`, if only that part of the command is
  // pasted.
  const bits = workWanted(` ${answer}`);
  if (bits === undefined) {
    throw new Error(`There is no “--work” with a number up to ${MOST_BITS} in it. Paste the bot’s whole answer.`);
  }
  const to = parseLink(answer.match(/--bot (npub1\w+)/)?.[1] ?? '');
  if (to === undefined) throw new Error('There is no “--bot npub1…” in it. Paste the bot’s whole answer.');
  const half = parseHalf(area('half-made').value);
  const patterns = asked;
  stopWork();
  const order = { target: workTarget(to.bot, pointOf(half)), bits };
  const now = mine(order, (number) => {
    stopWork();
    showMessage(splitMessage(half, patterns, workText(number)));
    say('work-said', 'Done: the message above holds the work now. Send it to the bot.');
    goTo('message');
  });
  mining = now;
  const draw = () => say('work-said', `Working: ${Math.round(100 * chanceAfter(now.tried, 2 ** bits))} of 100 are done by now.`);
  drawing = setInterval(draw, 1000);
  draw();
  show('work-stop', true);
}

/** The same age file as `npubbot split new` writes. */
function saveHalf(): void {
  const ids = { button: 'save-half-button', said: 'half-saved', error: 'half-error', field: 'half-passphrase' };
  void attemptSlowly(ids, async () => {
    const point = area('message').value.split(' ')[1];
    const lines = `${area('half-made').value}\n# prefixes: ${asked.join(' ')}\n`;
    const file = await encrypted(lines, input('half-passphrase').value);
    download(`npubbot-half-${fileName(asked[0])}-${point?.slice(2, 10)}.age`, file, 'application/octet-stream');
    return 'Saved, unless your browser asked you and you said no.';
  });
}

function openHalf(): void {
  const field = 'open-half-passphrase';
  const ids = { button: 'open-half-button', said: 'open-half-said', error: 'open-half-error', field };
  void attemptSlowly(ids, async () => {
    const text = await decrypted(await chosenFile('half-file', LARGEST_FILE), input(field).value);
    dropSavedKey();
    area('half').value = halfText(parseHalf(text));
    input('asked-for').value = text.match(/^# prefixes: (.*)$/m)?.[1] ?? '';
    return 'Opened. Now paste the bot’s answer.';
  });
}

function finish(): void {
  if (!mayDropKey()) return;
  forgetKey();
  const half = parseHalf(area('half').value);
  const tweak = parseTweak(area('tweak').value);
  const patterns = input('asked-for').value.trim() === '' ? [] : parsePatterns(input('asked-for').value);
  showKey(combine(half, tweak, patterns).key);
  say('half-served', useOf(half, area('tweak').value));
  show('half-served', true);
}

/** Keys made in this tab: x-coordinates of the halves' points, each with its tweak. */
const served = new Map<string, string>();

/** The text about a half that has made a key. It warns if the half has made another key before. */
function useOf(half: bigint, pasted: string): string {
  const [x, tweak] = [pointHex(half).slice(2), pasted.match(/ntweak1[a-z0-9]+/i)?.[0].toLowerCase() ?? pasted];
  const earlier = served.get(x);
  served.set(x, earlier ?? tweak);
  return earlier === undefined || earlier === tweak
    ? 'Your half has served. Never use it for another key: whoever has one of two keys of a half can compute the other.'
    : 'WARNING: this half has made another key before. Whoever has one of the two can compute the other. Use only one, ' +
        'and make a new half for the next key.';
}

export function startManual(): void {
  onSubmit('hand', () => attempt('patterns-error', ['patterns'], ask));
  onSubmit('finish', () => attempt('finish-error', ['half', 'tweak', 'asked-for'], finish));
  onSubmit('work', () => attempt('work-error', ['work-answer'], work));
  onClick('work-stop', () => {
    stopWork();
    say('work-said', 'Stopped.');
  });
  onSubmit('save-half', saveHalf);
  onSubmit('open-half', openHalf);
  copies('half', 'half-made');
  copies('message', 'message');
  input('kept').addEventListener('change', () => {
    unkept = !input('kept').checked;
    show('send', input('kept').checked);
  });
  for (const id of ['half', 'tweak', 'asked-for']) element(id).addEventListener('input', dropSavedKey);
}

/** A key belongs to the texts it was made of: changing them takes a key away that its owner has. */
function dropSavedKey(): void {
  if (!losesKey()) forgetKey();
}

/** Empties every field, when the key is forgotten. */
export function clearManual(): void {
  stopWork();
  for (const id of ['half-made', 'message', 'half', 'tweak', 'work-answer']) area(id).value = '';
  for (const id of ['patterns', 'asked-for', 'half-passphrase', 'open-half-passphrase']) input(id).value = '';
  element('qr').replaceChildren();
  show('made', false);
  unkept = false;
}
