// The bech32 texts (BIP-173, as NIP-19 uses it) that go between the asker and the bot.

import { bech32 } from '@scure/base';
import { Problem } from './texts';

/** Longest text read; `ncryptsec1…` is the longest written. */
const LIMIT = 200;

export function encode(kind: string, payload: Uint8Array): string {
  return bech32.encode(kind, bech32.toWords(payload), LIMIT);
}

/**
 * Finds the one text of a kind in what was pasted (a whole message or file will do) and reads its
 * payload. The text itself never stands in an error: it may be secret.
 */
export function decode(kind: string, pasted: string, length: number): Uint8Array {
  const text = find(kind, pasted);
  let read;
  try {
    read = bech32.decode(text as `${string}1${string}`, LIMIT);
  } catch {
    throw new Problem('text-damaged', { kind });
  }
  let payload;
  try {
    payload = bech32.fromWords(read.words);
  } catch {
    throw new Problem('text-damaged', { kind });
  }
  // The version is checked before the length, because a later version may be longer.
  if (payload[0] !== 1) throw new Problem('text-version', { kind, version: payload[0] ?? '?' });
  if (payload.length !== length) throw new Problem('text-damaged', { kind });
  return payload;
}

function find(kind: string, pasted: string): string {
  const found = [...new Set(pasted.match(new RegExp(`\\b${kind}1[a-z0-9]*`, 'gi')) ?? [])];
  if (found.length > 1) throw new Problem('text-several', { kind, count: found.length });
  if (found[0] !== undefined) return found[0];
  if (pasted.trim() === '') throw new Problem('text-missing', { kind });
  const other = pasted.match(/\b(nsec|ncryptsec|npub|nprofile|nhalf|ntweak)1/i)?.[1]?.toLowerCase() ?? 'none';
  throw new Problem('text-other', { kind, other });
}
