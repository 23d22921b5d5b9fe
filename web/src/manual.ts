// Both steps by hand: make a half and a message to send, and combine the half with the bot's
// answer. Works offline.

import { tweakIn } from './answers';
import { area, attempt, attemptSlowly, chosenFile, copies, download, element, fileName, goTo, input, onClick, onSubmit, say, show } from './dom';
import { odds } from './estimate';
import { decrypted, encrypted, LARGEST_FILE } from './keep';
import { halfText, parseHalf, pointHex, randomHalf } from './key';
import { forgetKey, losesKey, mayDropKey, showKey } from './key-card';
import { mine, type Mining } from './mining';
import { bits } from './difficulty';
import { parsePatterns } from './patterns';
import { meanings } from './prefix-field';
import { qrOf } from './qr';
import { splitMessage } from './request';
import { combine, parseTweak } from './tweak';
import { Problem, tell } from './texts';
import { MOST_BITS, orderOf, workLine, workWanted } from './work';

/** Whether a half was made here, and its owner has not confirmed that it is kept. */
let unkept = false;

export function losesHalf(): boolean {
  return unkept;
}

function ask(): void {
  const patterns = parsePatterns(input('patterns').value);
  if (unkept && !confirm(tell('half-replace'))) return;
  const half = randomHalf();
  const message = splitMessage(half, patterns);
  area('half-made').value = halfText(half);
  asked = patterns;
  area('message').value = message;
  element('qr').replaceChildren(qrOf(message, tell('qr-message')));
  input('kept').checked = false;
  input('asked-for').value = patterns.join(' ');
  for (const id of ['half-said', 'half-saved', 'half-error']) say(id, '');
  say('rarity', () => rarityOf(patterns));
  say('message-said', '');
  show('send', false);
  show('made', true);
  unkept = true;
  goTo('half-title');
}

/** The meanings of patterns that are more than a prefix, and the rarity of all, in words. */
function rarityOf(patterns: readonly string[]): string {
  const difficulty = bits(patterns);
  return [...meanings(patterns), difficulty === undefined ? tell('rarity-later') : odds(difficulty)].join(' ');
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

/** Does the work that the bot's refusal asks for, and shows the line to send. */
function work(): void {
  const wanted = workWanted(area('work-answer').value);
  if (wanted === undefined) throw new Problem('work-none', { most: MOST_BITS });
  stopWork();
  const order = orderOf(wanted);
  const now = mine(order, (number) => {
    stopWork();
    area('work-line').value = workLine(order, number);
    show('work-done', true);
    say('work-said', () => tell('work-added'));
    goTo('work-line');
  });
  mining = now;
  show('work-done', false);
  const draw = () => say('work-said', () => now.progress());
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
    return () => tell('half-saved');
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
    return () => tell('half-opened');
  });
}

function finish(): void {
  if (!mayDropKey()) return;
  forgetKey();
  const half = parseHalf(area('half').value);
  const tweak = parseTweak(area('tweak').value);
  const patterns = input('asked-for').value.trim() === '' ? [] : parsePatterns(input('asked-for').value);
  showKey(combine(half, tweak, patterns).key, patterns);
  const use = useOf(half, area('tweak').value);
  say('half-served', () => tell(use));
  show('half-served', true);
}

/** Keys made in this tab: x-coordinates of the halves' points, each with its tweak. */
const served = new Map<string, string>();

/** The name of the text about a half that has made a key. It warns if the half has made another. */
function useOf(half: bigint, pasted: string): string {
  const [x, tweak] = [pointHex(half).slice(2), tweakIn(pasted) ?? pasted];
  const earlier = served.get(x);
  served.set(x, earlier ?? tweak);
  return earlier === undefined || earlier === tweak ? 'half-served' : 'half-served-twice';
}

export function startManual(): void {
  onSubmit('hand', () => attempt('patterns-error', ['patterns'], ask));
  onSubmit('finish', () => attempt('finish-error', ['half', 'tweak', 'asked-for'], finish));
  onSubmit('work', () => attempt('work-error', ['work-answer'], work));
  onClick('work-stop', () => {
    stopWork();
    say('work-said', () => tell('work-stopped'));
  });
  onSubmit('save-half', saveHalf);
  onSubmit('open-half', openHalf);
  copies('half', 'half-made');
  copies('message', 'message');
  copies('work-line', 'work-line');
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
  for (const id of ['half-made', 'message', 'half', 'tweak', 'work-answer', 'work-line']) area(id).value = '';
  for (const id of ['patterns', 'asked-for', 'half-passphrase', 'open-half-passphrase']) input(id).value = '';
  element('qr').replaceChildren();
  show('made', false);
  unkept = false;
}
