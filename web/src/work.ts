// Proof of work: leading zero bits of SHA-256(text before ‖ number ‖ text after). That of a split
// request (`miner/src/key/split_work.rs`) is bound to the bot and the half: before the number stands
// SHA-256("npubbot split work 1" ‖ bot ‖ point). That of a gift wrap (NIP-13) is in the event's id.

import { concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { ChangingHash } from './sha256';

/** The most bits of work that the page begins. They take days. */
export const MOST_BITS = 40;

/** The bytes that are hashed before the number. `bot` is hex, `point` is compressed. */
export function workTarget(bot: string, point: Uint8Array): Uint8Array {
  return sha256(concatBytes(utf8ToBytes('npubbot split work 1'), hexToBytes(bot), point));
}

export interface WorkOrder {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
  /** Whether the number is written in digits (`digitsOf`), or as 8 bytes. */
  readonly isText: boolean;
  readonly bits: number;
}

/** The order for the work of a split request. */
export function splitWork(bot: string, point: Uint8Array, bits: number): WorkOrder {
  return { before: workTarget(bot, point), after: new Uint8Array(), isText: false, bits };
}

/** A number in digits, always of the same length. */
export function digitsOf(number: number): string {
  return String(1e15 + number);
}

/** Finds numbers with the work of an order. */
export class WorkFinder {
  private readonly text: ChangingHash;
  private readonly view: DataView;

  constructor(private readonly order: WorkOrder) {
    this.text = new ChangingHash(order.before, order.isText ? digitsOf(0).length : 8, order.after);
    const { buffer, byteOffset } = this.text.bytes;
    this.view = new DataView(buffer, byteOffset);
  }

  /** Bits of work that a number has: the leading zero bits of its hash. */
  bitsOf(number: number): number {
    if (this.order.isText) {
      for (let at = this.text.bytes.length, rest = 1e15 + number; at-- > 0; rest = Math.floor(rest / 10)) {
        this.text.bytes[at] = 0x30 + (rest % 10);
      }
    } else {
      this.view.setUint32(0, Math.floor(number / 2 ** 32));
      this.view.setUint32(4, number % 2 ** 32);
    }
    const hash = this.text.hash();
    const high = Math.clz32(hash[0]!);
    return high < 32 ? high : high + Math.clz32(hash[1]!);
  }

  /** The first of `count` numbers from `from`, `step` apart, with enough work. */
  find(from: number, step: number, count: number): number | undefined {
    for (let number = from; number < from + step * count; number += step) {
      if (this.bitsOf(number) >= this.order.bits) return number;
    }
    return undefined;
  }
}

/** The number as it stands in a message. */
export function workText(number: number): string {
  return `work:${number.toString(16)}`;
}

/** The proof of work that a bot asks for: of the half, or of the gift wrap. */
export interface WorkWanted {
  readonly of: 'half' | 'wrap';
  readonly bits: number;
}

/** The work that a refusal asks for. Its command line, or its tag, is the same in every language. */
export function workWanted(text: string): WorkWanted | undefined {
  const half = Number(text.match(/ --work (\d{1,3})\b/)?.[1]);
  if (half > 0 && half <= MOST_BITS) return { of: 'half', bits: half };
  const wrap = Number(text.match(/\["nonce", "[^"]*", "(\d{1,3})"\]/)?.[1]);
  return wrap > 0 && wrap <= MOST_BITS ? { of: 'wrap', bits: wrap } : undefined;
}
