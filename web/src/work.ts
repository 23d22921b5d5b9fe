// Proof of work in the text of a request (`miner/src/key/work.rs`): leading zero bits of
// SHA-256(SHA-256("npubbot work 1" ‖ bot ‖ author ‖ day) ‖ number).

import { concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { sha256 } from '@noble/hashes/sha2.js';
import * as nip19 from 'nostr-tools/nip19';
import { NumberHash } from './sha256';

/** The most bits of work that the page begins. They take days. */
export const MOST_BITS = 40;

/** Work to be done: by an author, for a bot. Keys are hex. */
export interface WorkWanted {
  readonly bot: string;
  readonly author: string;
  readonly bits: number;
}

export interface WorkOrder {
  /** The 32 bytes that are hashed before the number. */
  readonly before: Uint8Array;
  /** Today (UTC): `2026-11-26`. */
  readonly day: string;
  readonly bits: number;
}

export function orderOf({ bot, author, bits }: WorkWanted, now = Date.now()): WorkOrder {
  const day = new Date(now).toISOString().slice(0, 10);
  const parts = [utf8ToBytes('npubbot work 1'), hexToBytes(bot), hexToBytes(author), utf8ToBytes(day)];
  return { before: sha256(concatBytes(...parts)), day, bits };
}

/** Finds numbers with the work of an order. */
export class WorkFinder {
  private readonly hash: NumberHash;

  constructor(private readonly order: WorkOrder) {
    this.hash = new NumberHash(order.before);
  }

  /** Bits of work that a number has: the leading zero bits of its hash. */
  bitsOf(number: number): number {
    const hash = this.hash.of(number);
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

/** The line for a message. */
export function workLine({ day }: WorkOrder, number: number): string {
  return `work ${day} ${number.toString(16)}`;
}

/** The work that a refusal asks for. Its command line is the same in every language. */
export function workWanted(text: string): WorkWanted | undefined {
  const [, bot, author, count] = text.match(/\bwork\s+(npub1\w+)\s+(npub1\w+)\s+(\d{1,3})\b/) ?? [];
  const bits = Number(count);
  if (bot === undefined || author === undefined || !(bits > 0 && bits <= MOST_BITS)) return undefined;
  try {
    const hex = (npub: string) => nip19.decode(npub as `npub1${string}`).data;
    return { bot: hex(bot), author: hex(author), bits };
  } catch {
    return undefined;
  }
}
