// The finished key: shown, copied, drawn, saved, encrypted, forgotten.

import { area, button, copies, copy, element, goTo, input, onClick, onSubmit, say, show, the } from './dom';
import { nsecOf } from './key';
import { encrypt } from './ncryptsec';
import { qrOf } from './qr';

/** The key, until it is forgotten or the page closes. */
let key: bigint | undefined;

/**
 * Shows a key. `onForget` runs when its owner says that it is saved; without it there is nothing
 * to forget.
 */
export function showKey(made: { key: bigint; npub: string }, onForget?: () => void): void {
  forgetKey();
  key = made.key;
  whenSaved = onForget;
  area('npub').value = made.npub;
  // For a password manager that keeps the password of the ncryptsec.
  input('password-owner').value = made.npub;
  the('open-app', HTMLAnchorElement).href = `nostr:${made.npub}`;
  show('finished-with', onForget !== undefined);
  show('save-nsec', 'PasswordCredential' in window);
  show('done', true);
  goTo('done-title');
}

let whenSaved: (() => void) | undefined;

export function forgetKey(): void {
  key = undefined;
  whenSaved = undefined;
  for (const id of ['npub', 'nsec', 'ncryptsec']) area(id).value = '';
  element('nsec-qr').replaceChildren();
  for (const id of ['password', 'password-owner']) input(id).value = '';
  for (const id of ['npub-said', 'nsec-said', 'ncryptsec-said', 'password-error', 'half-served']) say(id, '');
  for (const id of ['done', 'nsec-box', 'encrypted', 'half-served']) show(id, false);
  button('show-nsec').textContent = 'Show';
  button('show-nsec').setAttribute('aria-expanded', 'false');
}

function toggleNsec(): void {
  if (key === undefined) return;
  const shown = element('nsec-box').hidden !== false;
  // The nsec is not even in the document until the person asks for it.
  area('nsec').value = shown ? nsecOf(key) : '';
  element('nsec-qr').replaceChildren(...(shown ? [qrOf(nsecOf(key), 'QR code of your nsec')] : []));
  show('nsec-box', shown);
  button('show-nsec').textContent = shown ? 'Hide' : 'Show';
  button('show-nsec').setAttribute('aria-expanded', String(shown));
}

/** A class of Chromium browsers. It asks their password manager, or the phone's. */
type PasswordCredentialType = new (data: { id: string; name: string; password: string }) => Credential;

async function saveNsec(): Promise<void> {
  const Kind = (window as unknown as { PasswordCredential?: PasswordCredentialType }).PasswordCredential;
  if (key === undefined || Kind === undefined) return;
  const npub = area('npub').value;
  try {
    await navigator.credentials.store(new Kind({ id: npub, name: 'Nostr key (nsec)', password: nsecOf(key) }));
    say('nsec-said', 'Your browser was asked to save it. If it did not offer to, use Copy.');
  } catch {
    say('nsec-said', 'Your browser does not save it for this page. Use Copy, and paste it into your password manager.');
  }
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

export function startKeyCard(): void {
  onSubmit('encrypt', () => void encryptKey());
  onClick('show-nsec', toggleNsec);
  onClick('save-nsec', () => void saveNsec());
  onClick('copy-nsec', () => {
    if (key !== undefined) void copy(nsecOf(key), 'nsec-said');
  });
  onClick('forget', () => {
    const after = whenSaved;
    forgetKey();
    after?.();
  });
  copies('npub', 'npub');
  copies('ncryptsec', 'ncryptsec');
}
