// The bech32 texts (BIP-173, as NIP-19 uses it) that go between the asker and the bot.

import { bech32 } from '@scure/base';

export class TextError extends Error {}

/** Longest text read; `ncryptsec1…` is the longest written. */
const LIMIT = 200;

export function encode(kind: string, payload: Uint8Array): string {
  return bech32.encode(kind, bech32.toWords(payload), LIMIT);
}

/**
 * Finds the one text of a kind in what was pasted (a whole message or file will do) and reads its
 * payload. The text itself never stands in an error: it may be secret.
 */
export function decode(kind: string, pasted: string, what: string, length: number): Uint8Array {
  const text = find(kind, pasted, what);
  let read;
  try {
    read = bech32.decode(text as `${string}1${string}`, LIMIT);
  } catch {
    throw new TextError(`This ${what} is damaged (its checksum is wrong). Copy the whole ${kind}1… text again.`);
  }
  let payload;
  try {
    payload = bech32.fromWords(read.words);
  } catch {
    throw new TextError(`This ${what} is damaged (its padding is wrong). Copy the whole ${kind}1… text again.`);
  }
  // The version is checked before the length, because a later version may be longer.
  if (payload[0] !== 1) {
    const version = payload[0] === undefined ? 'no version' : `version ${payload[0]}`;
    throw new TextError(`This ${what} has ${version}; this page reads version 1. Get a newer copy of the page.`);
  }
  if (payload.length !== length) {
    throw new TextError(`This ${what} holds ${payload.length} bytes where ${length} belong. Copy the whole text again.`);
  }
  return payload;
}

function find(kind: string, pasted: string, what: string): string {
  const found = [...new Set(pasted.match(new RegExp(`\\b${kind}1[a-z0-9]*`, 'gi')) ?? [])];
  if (found.length > 1) throw new TextError(`There are ${found.length} texts ${kind}1… in it. Paste one.`);
  if (found[0] !== undefined) return found[0];
  if (pasted.trim() === '') throw new TextError(`The ${what} is missing. Paste the text that starts with ${kind}1.`);
  const other = pasted.match(/\b(nsec|ncryptsec|npub|nprofile|nhalf|ntweak)1/i)?.[1]?.toLowerCase();
  const names: Readonly<Record<string, string>> = {
    nsec: 'a secret key (nsec). It does not belong here; paste it nowhere you do not have to',
    ncryptsec: 'an encrypted secret key (ncryptsec)',
    npub: 'a public key (npub)',
    nprofile: 'a profile (nprofile)',
    nhalf: 'your half (nhalf), which is secret: never send it to anyone',
    ntweak: 'a tweak (ntweak)',
  };
  const instead = other === undefined ? `This is not a ${what}` : `This is ${names[other]}`;
  throw new TextError(`${instead}. Paste the ${what}: it starts with ${kind}1.`);
}
