// Requests and halves at rest: age files under a passphrase, in the browser's local storage or as a
// file. `age -d` opens them, and so does `npubbot combine --half`.

import { base64 } from '@scure/base';
import { Decrypter, Encrypter } from 'age-encryption';

/** scrypt with 2^16: 64 MiB, about a second on a phone. */
const WORK = 16;

/** A saved request is a few hundred bytes; nothing larger is read. */
export const LARGEST_FILE = 16_384;

/** Saved requests shown and kept in one browser. */
export const MOST_KEPT = 20;

const PREFIX = 'npubbot-request-';

export class KeepError extends Error {}

/** Encrypts some lines of text as an age file. */
export async function encrypted(lines: string, passphrase: string): Promise<Uint8Array<ArrayBuffer>> {
  if (passphrase === '') throw new KeepError('There is no passphrase yet. Write one.');
  const encrypter = new Encrypter();
  encrypter.setScryptWorkFactor(WORK);
  encrypter.setPassphrase(passphrase);
  return new Uint8Array(await encrypter.encrypt(lines));
}

export async function decrypted(file: Uint8Array, passphrase: string): Promise<string> {
  if (file.length > LARGEST_FILE) throw new KeepError('This file is too large to be one of this page.');
  if (passphrase === '') throw new KeepError('There is no passphrase yet. Write the one you chose.');
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  try {
    return await decrypter.decrypt(file, 'text');
  } catch (error) {
    const wrong = String(error).includes('no identity matched');
    throw new KeepError(
      wrong ? 'Wrong passphrase. Try again.' : 'This file is damaged, or none of this page. Choose another one.',
    );
  }
}

/** A request kept in this browser. What it asks for is known only with its passphrase. */
export interface Kept {
  readonly name: string;
  /** Time at which the request was made, in Unix milliseconds. */
  readonly asked: number;
}

/** The requests kept here, newest first. Empty where the browser allows no storage. */
export function kept(): Kept[] {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX));
    return names
      .map((name) => ({ name, asked: Number(name.slice(PREFIX.length).split('-')[0]) * 1000 }))
      .filter((one) => Number.isFinite(one.asked))
      .sort((one, other) => other.asked - one.asked);
  } catch {
    return [];
  }
}

/**
 * Keeps an encrypted request under a name of its own: its date (Unix seconds) and a random number.
 */
export function keep(asked: number, file: Uint8Array): Kept {
  if (kept().length >= MOST_KEPT) {
    throw new KeepError(`This browser keeps ${MOST_KEPT} requests already. Save this one as a file.`);
  }
  const name = `${PREFIX}${asked}-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
  try {
    localStorage.setItem(name, base64.encode(file));
  } catch {
    throw new KeepError('This browser keeps nothing for this page. Save a file instead.');
  }
  return { name, asked: asked * 1000 };
}

export function stored(name: string): Uint8Array {
  return base64.decode(localStorage.getItem(name) ?? '');
}

export function forget(name: string): void {
  localStorage.removeItem(name);
}
