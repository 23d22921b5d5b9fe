// The bot's answer, and how it makes a key of a half: λ^rotation · (h + offset) mod n.

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToNumberBE } from '@noble/curves/utils.js';
import { LAMBDA, npubOf, ORDER, pointOf } from './key';
import { matches, nameOf } from './patterns';
import { decode } from './text';
import { Problem } from './texts';

/** The bot's tweak. It is public, because it says nothing without the half. */
export interface Tweak {
  readonly rotation: number;
  readonly offset: bigint;
  /** The first 8 bytes of SHA-256 of the compressed point it was searched for. */
  readonly fingerprint: Uint8Array;
}

/** Reads `ntweak1…`: version 1, rotation, offset (32 bytes), fingerprint (8 bytes). */
export function parseTweak(pasted: string): Tweak {
  const payload = decode('ntweak', pasted, 42);
  const rotation = payload[1] ?? 0;
  if (rotation > 2) throw new Problem('tweak-damaged');
  const offset = bytesToNumberBE(payload.subarray(2, 34));
  if (offset >= ORDER) throw new Problem('tweak-damaged');
  return { rotation, offset, fingerprint: payload.slice(34) };
}

export function fingerprintOf(point: Uint8Array): Uint8Array {
  return sha256(point).slice(0, 8);
}

/** Makes the key. `patterns` may be empty; otherwise the npub must have one of them. */
export function combine(half: bigint, tweak: Tweak, patterns: readonly string[]): { key: bigint; npub: string } {
  // A point given as an npub is the one with an even y. That may be -H instead of the half's point
  // H.
  const ours = [half, ORDER - half].find((scalar) => same(fingerprintOf(pointOf(scalar)), tweak.fingerprint));
  if (ours === undefined) throw new Problem('tweak-other-half');
  const sum = (ours + tweak.offset) % ORDER;
  if (sum === 0n) throw new Problem('tweak-cancels');
  const key = (sum * LAMBDA ** BigInt(tweak.rotation)) % ORDER;
  const npub = npubOf(key);
  if (patterns.length > 0 && !matches(npub, patterns)) {
    throw new Problem('tweak-unfit', { npub, patterns: patterns.map(nameOf).join(' ') });
  }
  return { key, npub };
}

function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
