// Requests and halves at rest: age files under a passphrase, in the browser's local storage or as a
// file. `age -d` opens them, and so does `npubbot combine --half`.

import { base64 } from '@scure/base';
import { Decrypter, Encrypter } from 'age-encryption';
import { Problem } from './texts';

/** scrypt with 2^16: 64 MiB, about a second on a phone. */
const WORK = 16;

/** A saved request is a few hundred bytes; nothing larger is read. */
export const LARGEST_FILE = 16_384;

/** Saved requests shown and kept in one browser. */
export const MOST_KEPT = 20;

const PREFIX = 'npubbot-request-';

/** Encrypts some lines of text as an age file. */
export async function encrypted(lines: string, passphrase: string): Promise<Uint8Array<ArrayBuffer>> {
  if (passphrase === '') throw new Problem('no-passphrase');
  const encrypter = new Encrypter();
  encrypter.setScryptWorkFactor(WORK);
  encrypter.setPassphrase(passphrase);
  return new Uint8Array(await encrypter.encrypt(lines));
}

export async function decrypted(file: Uint8Array, passphrase: string): Promise<string> {
  if (file.length > LARGEST_FILE) throw new Problem('file-large');
  if (passphrase === '') throw new Problem('no-passphrase');
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  try {
    return await decrypter.decrypt(file, 'text');
  } catch (error) {
    throw new Problem(String(error).includes('no identity matched') ? 'wrong-passphrase' : 'file-damaged');
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
  if (kept().length >= MOST_KEPT) throw new Problem('kept-many', { count: MOST_KEPT });
  const name = `${PREFIX}${asked}-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
  try {
    localStorage.setItem(name, base64.encode(file));
  } catch {
    throw new Problem('keeps-nothing');
  }
  return { name, asked: asked * 1000 };
}

export function stored(name: string): Uint8Array {
  return base64.decode((localStorage.getItem(name) ?? '').split(' ')[0] ?? '');
}

export function forget(name: string): void {
  localStorage.removeItem(name);
}

/** The answer that a kept request got. It is public, and stands behind the file. */
export function answerOf(name: string): string | undefined {
  return localStorage.getItem(name)?.split(' ')[1];
}

export function keepAnswer(name: string, tweak: string): void {
  const file = localStorage.getItem(name)?.split(' ')[0];
  if (file !== undefined) localStorage.setItem(name, `${file} ${tweak}`);
}
