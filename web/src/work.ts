// Proof of work of a split request (`miner/src/key/split_work.rs`). It is bound to the bot and the
// half. Its bits are the leading zero bits of SHA-256(SHA-256("npubbot split work 1" ‖ bot ‖ point)
// ‖ number).

import { concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { sha256 } from '@noble/hashes/sha2.js';

/** The most bits of work that the page begins. They take days. */
export const MOST_BITS = 40;

/** The bytes that are hashed before the number. `bot` is hex, `point` is compressed. */
export function workTarget(bot: string, point: Uint8Array): Uint8Array {
  return sha256(concatBytes(utf8ToBytes('npubbot split work 1'), hexToBytes(bot), point));
}

/** Bits of work that a number has: the leading zero bits of its hash. */
export function workBits(target: Uint8Array, number: number): number {
  const message = new Uint8Array(40);
  message.set(target);
  const view = new DataView(message.buffer);
  view.setUint32(32, Math.floor(number / 2 ** 32));
  view.setUint32(36, number % 2 ** 32);
  const hash = new DataView(sha256(message).buffer);
  const high = Math.clz32(hash.getUint32(0));
  return high < 32 ? high : high + Math.clz32(hash.getUint32(4));
}

/** The first of `count` numbers from `from` with at least `bits`; `undefined` if there is none. */
export function findWork(target: Uint8Array, bits: number, from: number, count: number): number | undefined {
  for (let number = from; number < from + count; number += 1) {
    if (workBits(target, number) >= bits) return number;
  }
  return undefined;
}

/** The number as it stands in a message. */
export function workText(number: number): string {
  return `work:${number.toString(16)}`;
}

/** Bits that the bot asks for in a refusal: its command line is the same in every language. */
export function workWanted(text: string): number | undefined {
  const bits = Number(text.match(/ --work (\d{1,3})\b/)?.[1]);
  return bits > 0 && bits <= MOST_BITS ? bits : undefined;
}
