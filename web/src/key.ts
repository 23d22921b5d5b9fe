// Scalars and points of secp256k1, the half, and the texts of a finished key.

import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bytesToHex, bytesToNumberBE, numberToBytesBE } from '@noble/curves/utils.js';
import { bech32 } from '@scure/base';
import { decode, encode } from './text';
import { Problem } from './texts';

export const ORDER = secp256k1.Point.Fn.ORDER;

/** A cube root of 1 modulo the group's order. */
export const LAMBDA = 0x5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72n;

const fromBrowser = (bytes: Uint8Array<ArrayBuffer>): void => void crypto.getRandomValues(bytes);

/**
 * A random scalar from 1 to n-1. Numbers outside are drawn again, so that all are equally likely.
 */
export function randomHalf(random = fromBrowser): bigint {
  for (;;) {
    const bytes = new Uint8Array(32);
    random(bytes);
    const half = bytesToNumberBE(bytes);
    bytes.fill(0);
    if (half > 0n && half < ORDER) return half;
  }
}

/** `half·G`, compressed. */
export function pointOf(half: bigint): Uint8Array {
  return secp256k1.Point.BASE.multiply(half).toBytes(true);
}

export function pointHex(half: bigint): string {
  return bytesToHex(pointOf(half));
}

/** The secret text `nhalf1…`: version 1 and the scalar. */
export function halfText(half: bigint): string {
  return encode('nhalf', Uint8Array.of(1, ...numberToBytesBE(half, 32)));
}

export function parseHalf(pasted: string): bigint {
  const half = bytesToNumberBE(decode('nhalf', pasted, 33).subarray(1));
  if (half === 0n || half >= ORDER) throw new Problem('half-no-key');
  return half;
}

/** The npub of a key (NIP-19): the x-coordinate of its point. */
export function npubOf(key: bigint): string {
  return bech32.encode('npub', bech32.toWords(pointOf(key).subarray(1)));
}

/** The nsec of a key (NIP-19). */
export function nsecOf(key: bigint): string {
  return bech32.encode('nsec', bech32.toWords(numberToBytesBE(key, 32)));
}
