// The page: its two steps, wired to the functions that do the work.

import { halfText, nsecOf, parseHalf, pointHex, randomHalf } from './key';
import { encrypt } from './ncryptsec';
import { bits, parsePatterns } from './patterns';
import { qrOf } from './qr';
import { combine, parseTweak } from './tweak';

function the<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}
const input = (id: string) => the(id, HTMLInputElement);
const area = (id: string) => the(id, HTMLTextAreaElement);
const button = (id: string) => the(id, HTMLButtonElement);
const show = (id: string, shown: boolean): void => {
  the(id, HTMLElement).hidden = !shown;
};
const say = (id: string, text: string): void => {
  the(id, HTMLElement).textContent = text;
};
const onSubmit = (id: string, act: () => void) =>
  the(id, HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    act();
  });

/** Says what went wrong beside the fields it concerns. */
function attempt(errorId: string, fields: readonly string[], act: () => void): void {
  let problem = '';
  try {
    act();
  } catch (error) {
    problem = error instanceof Error ? error.message : 'Something went wrong. Please reload the page.';
  }
  say(errorId, problem);
  for (const id of fields) the(id, HTMLElement).setAttribute('aria-invalid', String(problem !== ''));
}

/** Copies the text; a browser that forbids it leaves the text selected. */
async function copy(text: string, saidId: string, from?: HTMLTextAreaElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(saidId, 'Copied.');
  } catch {
    from?.select();
    const instead = from ? 'the text is selected, copy it yourself' : 'show the text and copy it yourself';
    say(saidId, `Your browser does not let the page copy: ${instead}.`);
  }
}

function copies(name: string, areaId: string, saidId = `${name}-said`): void {
  button(`copy-${name}`).addEventListener('click', () => void copy(area(areaId).value, saidId, area(areaId)));
}

/** Whether a half was made here that its owner has not said to have kept. */
let unkept = false;

/** In words up to the trillions, as a power of two beyond. */
function rarity(power: number): string {
  if (power > 49) return `2^${power.toFixed(0)}`;
  const format = { notation: 'compact', compactDisplay: 'long', maximumSignificantDigits: 3 } as const;
  return new Intl.NumberFormat('en', format).format(2 ** power);
}

function ask(): void {
  const patterns = parsePatterns(input('patterns').value);
  if (unkept && !confirm('You have not kept the half made before. Replace it? An answer to it would be lost.')) return;
  const half = randomHalf();
  const message = `split ${pointHex(half)} ${patterns.join(' ')}`;
  area('half-made').value = halfText(half);
  area('message').value = message;
  the('qr', HTMLElement).replaceChildren(qrOf(message, 'QR code of the message'));
  input('kept').checked = false;
  input('wished').value = patterns.join(' ');
  say('half-said', '');
  say('rarity', `One key in about ${rarity(bits(patterns))} starts like that.`);
  say('message-said', '');
  show('send', false);
  show('made', true);
  unkept = true;
  the('half-title', HTMLElement).focus();
}

function saveHalf(): void {
  const [, point, ...patterns] = area('message').value.split(' ');
  const text = [
    'The secret half of a split-key request to npubbot. Keep it until the answer is there; send it to nobody.',
    `asked for: ${patterns.join(' ')}`,
    `public point: ${point}`,
    area('half-made').value,
    '',
  ].join('\n');
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `npubbot-half-${patterns[0]}-${point?.slice(2, 10)}.txt`;
  link.click();
  // Only after the browser has taken the file.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  say('half-said', 'Saved, unless your browser asked you and you said no.');
}

/** The key of step 2, until the page closes. */
let key: bigint | undefined;

function forget(): void {
  key = undefined;
  for (const id of ['npub', 'nsec', 'ncryptsec']) area(id).value = '';
  input('password').value = '';
  for (const id of ['npub-said', 'nsec-said', 'ncryptsec-said', 'password-error']) say(id, '');
  for (const id of ['done', 'nsec-box', 'encrypted']) show(id, false);
  button('show-nsec').textContent = 'Show';
  button('show-nsec').setAttribute('aria-expanded', 'false');
}

function finish(): void {
  forget();
  const half = parseHalf(area('half').value);
  const tweak = parseTweak(area('tweak').value);
  const wished = input('wished').value.trim() === '' ? [] : parsePatterns(input('wished').value);
  const made = combine(half, tweak, wished);
  key = made.key;
  area('npub').value = made.npub;
  show('done', true);
  the('done-title', HTMLElement).focus();
}

function toggleNsec(): void {
  if (key === undefined) return;
  const shown = the('nsec-box', HTMLElement).hidden !== false;
  // Not even in the document until asked for.
  area('nsec').value = shown ? nsecOf(key) : '';
  show('nsec-box', shown);
  button('show-nsec').textContent = shown ? 'Hide' : 'Show';
  button('show-nsec').setAttribute('aria-expanded', String(shown));
}

async function encryptKey(): Promise<void> {
  const password = input('password').value;
  const wanted = key;
  if (wanted === undefined) return;
  say('password-error', password === '' ? 'There is no password yet. Write one.' : '');
  if (password === '') return;
  button('encrypt-button').disabled = true;
  say('ncryptsec-said', 'Working: this is slow on purpose.');
  try {
    const text = await encrypt(wanted, password);
    // Another key may have been made meanwhile, or this one forgotten.
    if (key !== wanted) return;
    area('ncryptsec').value = text;
    input('password').value = '';
    show('encrypted', true);
    say('ncryptsec-said', 'Encrypted.');
  } catch {
    say('ncryptsec-said', '');
    say('password-error', 'It did not work, perhaps for want of memory. Close other tabs and try again.');
  } finally {
    button('encrypt-button').disabled = false;
  }
}

onSubmit('ask', () => attempt('patterns-error', ['patterns'], ask));
onSubmit('finish', () => attempt('finish-error', ['half', 'tweak', 'wished'], finish));
onSubmit('encrypt', () => void encryptKey());
button('save-half').addEventListener('click', saveHalf);
button('show-nsec').addEventListener('click', toggleNsec);
button('copy-nsec').addEventListener('click', () => {
  if (key !== undefined) void copy(nsecOf(key), 'nsec-said');
});
copies('half', 'half-made');
copies('message', 'message');
copies('npub', 'npub');
copies('ncryptsec', 'ncryptsec');
input('kept').addEventListener('change', () => {
  unkept = !input('kept').checked;
  show('send', input('kept').checked);
});
// A key belongs to what was pasted: changing that takes the key away.
for (const id of ['half', 'tweak', 'wished']) the(id, HTMLElement).addEventListener('input', forget);
addEventListener('beforeunload', (event) => {
  if (unkept) event.preventDefault();
});
// Kept in the back-forward cache, a page would outlive its closing.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
