// The finished key: shown, copied, drawn, saved, encrypted, forgotten.

import { area, button, copy, element, goTo, input, onClick, onSubmit, say, show, the } from './dom';
import { npubOf, nsecOf } from './key';
import { encrypt } from './ncryptsec';
import { chosenPlaces } from './patterns';
import { qrOf } from './qr';
import { tell } from './texts';

/** A finished key, until it is forgotten. A reload of the tab brings it back. */
interface HeldKey {
  readonly key: bigint;
  /** The patterns asked for. Their characters stand out in the npub. */
  readonly patterns: readonly string[];
  /** Name of the kept request that it was made of, which goes with it. */
  readonly request?: string;
  /** Whether its owner has copied, seen or saved it. */
  saved: boolean;
  /** Whether the page has put its secret into the clipboard. */
  copied: boolean;
}

let held: HeldKey | undefined;

/** The key's name in the session storage, which the browser keeps until the tab is closed. */
const PLACE = 'npubbot-key';

function remember(change: Partial<HeldKey> = {}): void {
  if (held === undefined) return;
  Object.assign(held, change);
  try {
    sessionStorage.setItem(PLACE, JSON.stringify({ ...held, key: held.key.toString(16) }));
  } catch {
    // Nothing is stored for this page here. It still asks before the key is lost.
  }
}

/** Whether leaving now would lose a key that its owner has not copied, seen or saved. */
export function losesKey(): boolean {
  return held !== undefined && !held.saved;
}

/** Whether the key may go: its owner has it, or says so. */
export function mayDropKey(): boolean {
  return !losesKey() || confirm(tell('forget-sure'));
}

/** Shows a new key. `request` names the kept request that is deleted with it. */
export function showKey(key: bigint, patterns: readonly string[], request?: string): void {
  forgetKey();
  held = { key, patterns, saved: false, copied: false, ...(request !== undefined && { request }) };
  remember();
  draw(held);
}

/** Shows the key that this tab held before it was loaded again. Returns whether there is one. */
export function restoreKey(): boolean {
  try {
    const stored = JSON.parse(sessionStorage.getItem(PLACE) ?? '') as HeldKey;
    held = { ...stored, key: BigInt(`0x${String(stored.key)}`) };
    draw(held);
    return true;
  } catch {
    return false;
  }
}

function draw({ key, patterns }: HeldKey): void {
  const npub = npubOf(key);
  const chosen = patterns.length > 0 ? (chosenPlaces(npub, patterns) ?? []) : [];
  const letters = [...npub].map((letter, at) => {
    if (!chosen.includes(at - 5)) return letter;
    const mark = document.createElement('mark');
    mark.textContent = letter;
    return mark;
  });
  element('npub').replaceChildren(...letters);
  // For a password manager that keeps the password of the ncryptsec.
  input('password-owner').value = npub;
  the('open-app', HTMLAnchorElement).href = `nostr:${npub}`;
  show('save-nsec', 'PasswordCredential' in window);
  show('done', true);
  say('title', () => tell('page-title-found'));
  goTo('done-title');
}

export function forgetKey(): void {
  held = undefined;
  say('title', () => tell('page-title'));
  try {
    sessionStorage.removeItem(PLACE);
  } catch {
    // Nothing was stored either.
  }
  for (const id of ['nsec', 'ncryptsec']) area(id).value = '';
  for (const id of ['npub', 'nsec-qr']) element(id).replaceChildren();
  for (const id of ['password', 'password-owner']) input(id).value = '';
  for (const id of ['npub-said', 'nsec-said', 'ncryptsec-said', 'password-error', 'half-served']) say(id, '');
  for (const id of ['done', 'nsec-box', 'encrypted', 'half-served']) show(id, false);
  say('show-nsec', () => tell('show'));
  button('show-nsec').setAttribute('aria-expanded', 'false');
}

function toggleNsec(): void {
  if (held === undefined) return;
  const shown = element('nsec-box').hidden !== false;
  // The nsec is not even in the document until the person asks for it.
  const nsec = shown ? nsecOf(held.key) : '';
  area('nsec').value = nsec;
  element('nsec-qr').replaceChildren(...(shown ? [qrOf(nsec, tell('qr-nsec'))] : []));
  if (shown) remember({ saved: true });
  show('nsec-box', shown);
  say('show-nsec', () => tell(shown ? 'hide' : 'show'));
  button('show-nsec').setAttribute('aria-expanded', String(shown));
}

/** A class of Chromium browsers. It asks their password manager, or the phone's. */
type PasswordCredentialType = new (data: { id: string; name: string; password: string }) => Credential;

async function saveNsec(): Promise<void> {
  const Kind = (window as unknown as { PasswordCredential?: PasswordCredentialType }).PasswordCredential;
  if (held === undefined || Kind === undefined) return;
  const npub = npubOf(held.key);
  try {
    await navigator.credentials.store(new Kind({ id: npub, name: 'Nostr key (nsec)', password: nsecOf(held.key) }));
    remember({ saved: true });
    say('nsec-said', () => tell('save-asked'));
  } catch {
    say('nsec-said', () => tell('save-refused'));
  }
}

async function encryptKey(): Promise<void> {
  const password = input('password').value;
  const wanted = held?.key;
  if (wanted === undefined) return;
  say('password-error', password === '' ? () => tell('no-password') : '');
  if (password === '') return;
  button('encrypt-button').disabled = true;
  say('ncryptsec-said', () => tell('slow'));
  try {
    const text = await encrypt(wanted, password);
    // Another key may have been made meanwhile, or this one forgotten.
    if (held?.key !== wanted) return;
    area('ncryptsec').value = text;
    input('password').value = '';
    show('encrypted', true);
    say('ncryptsec-said', () => tell('encrypted'));
  } catch {
    say('ncryptsec-said', '');
    say('password-error', () => tell('no-memory'));
  } finally {
    button('encrypt-button').disabled = false;
  }
}

/** Copies a secret text, and remembers that the clipboard has it. */
async function copySecret(text: string, saidId: string, from?: HTMLTextAreaElement): Promise<void> {
  if (await copy(text, saidId, from)) remember({ saved: true, copied: true });
}

function forget(afterwards: (request?: string) => void): void {
  if (held === undefined || !mayDropKey()) return;
  const { request, copied } = held;
  forgetKey();
  afterwards(request);
  say('forgotten', () => [tell('forgotten'), ...(copied ? [tell('clipboard-has')] : [])].join(' '));
  show('clear-clipboard', copied);
  goTo('forgotten');
}

/** Puts a blank into the clipboard; a browser may ignore an empty text. */
async function clearClipboard(): Promise<void> {
  const isCleared = await navigator.clipboard.writeText(' ').then(() => true, () => false);
  say('forgotten', () => tell(isCleared ? 'clipboard-cleared' : 'clipboard-stays'));
  show('clear-clipboard', !isCleared);
}

/** Prints npub, nsec and its QR code, and the ncryptsec if there is one. */
function printSheet(): void {
  if (held === undefined) return;
  if (element('nsec-box').hidden) toggleNsec();
  print();
}

/** `afterwards` runs when the key is forgotten, with the name of its kept request. */
export function startKeyCard(afterwards: (request?: string) => void): void {
  onSubmit('encrypt', () => void encryptKey());
  onClick('show-nsec', toggleNsec);
  onClick('save-nsec', () => void saveNsec());
  onClick('copy-nsec', () => {
    if (held !== undefined) void copySecret(nsecOf(held.key), 'nsec-said');
  });
  onClick('copy-ncryptsec', () => void copySecret(area('ncryptsec').value, 'ncryptsec-said', area('ncryptsec')));
  // A text that was selected and copied without the page's buttons.
  for (const id of ['nsec', 'ncryptsec']) {
    area(id).addEventListener('copy', () => remember({ saved: true, copied: true }));
  }
  onClick('print', printSheet);
  onClick('forget', () => forget(afterwards));
  onClick('clear-clipboard', () => void clearClipboard());
  onClick('copy-npub', () => void copy(element('npub').textContent ?? '', 'npub-said'));
}
