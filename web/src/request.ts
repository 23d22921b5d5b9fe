// One request: a half, the one-time Nostr identity that asks with it, and the messages to the bot
// and back.

import * as nip19 from 'nostr-tools/nip19';
import * as nip59 from 'nostr-tools/nip59';
import { finalizeEvent, generateSecretKey, getPublicKey, type NostrEvent } from 'nostr-tools/pure';
import { halfText, parseHalf, pointHex, randomHalf } from './key';
import type { BotLink } from './link';
import { parseLink } from './link';
import { parsePatterns } from './patterns';
import { Problem } from './texts';

export interface AskRequest {
  /** The bot that is asked, and the relays that the request is sent through. */
  readonly to: BotLink;
  readonly half: bigint;
  /** Secret key of the one-time identity, which has no use once the key is there. */
  readonly identity: Uint8Array;
  readonly patterns: readonly string[];
  /** Unix seconds. Part of the message's id, so a request that is sent twice is one request. */
  readonly asked: number;
}

export function newRequest(to: BotLink, patterns: readonly string[], now = Date.now()): AskRequest {
  return { to, half: randomHalf(), identity: generateSecretKey(), patterns, asked: Math.floor(now / 1000) };
}

/** Public key of the one-time identity, hex. */
export function asker(request: AskRequest): string {
  return getPublicKey(request.identity);
}

/** The text of a request: `split <point> prefix …`. */
export function splitMessage(half: bigint, patterns: readonly string[]): string {
  return ['split', pointHex(half), ...patterns].join(' ');
}

/**
 * A gift wrap (NIP-17, NIP-59) to the bot. The same text at the same second has the same rumor id.
 */
export function wrapped(request: AskRequest, text: string, at: number): NostrEvent {
  const rumor = { kind: 14, content: text, created_at: at, tags: [['p', request.to.bot]] };
  return nip59.wrapEvent(rumor, request.identity, request.to.bot);
}

/** The one-time identity's list of DM relays (NIP-17, kind 10050). It has the bot's relays. */
export function inboxList(request: AskRequest): NostrEvent {
  const tags = request.to.relays.map((relay) => ['relay', relay]);
  return finalizeEvent({ kind: 10050, content: '', created_at: request.asked, tags }, request.identity);
}

/** Signs a relay's challenge (NIP-42). */
export function authenticates(request: AskRequest) {
  return async (template: Parameters<typeof finalizeEvent>[0]) => finalizeEvent(template, request.identity);
}

/** Longest wrap that is opened, in characters; the bot's answers are a few thousand. */
const LONGEST_WRAP = 65_536;

/**
 * The bot's message in a gift wrap. `undefined` if somebody else wrote it or it cannot be opened.
 */
export function opened(request: AskRequest, wrap: NostrEvent): { text: string; at: number; id: string } | undefined {
  if (wrap.content.length > LONGEST_WRAP) return undefined;
  try {
    // Checks the seal's kind and signature, and that seal and rumor have one author.
    const rumor = nip59.unwrapEvent(wrap, request.identity);
    if (rumor.pubkey !== request.to.bot || rumor.kind !== 14 || typeof rumor.content !== 'string') return undefined;
    return { text: rumor.content, at: Number(rumor.created_at), id: rumor.id };
  } catch {
    return undefined;
  }
}

/**
 * A request as a few lines of text. They are secret, so they are only stored encrypted. `npubbot
 * combine` reads the first two lines.
 */
export function toLines(request: AskRequest): string {
  const { bot, relays } = request.to;
  return [
    halfText(request.half),
    `# prefixes: ${request.patterns.join(' ')}`,
    `# bot: ${nip19.nprofileEncode({ pubkey: bot, relays: [...relays] })}`,
    `# one-time identity: ${nip19.nsecEncode(request.identity)}`,
    `# asked: ${new Date(request.asked * 1000).toISOString()}`,
    '',
  ].join('\n');
}

/** Reads a saved request. If the text is none, throws an `Error`, which holds no secret. */
export function fromLines(text: string): AskRequest {
  const line = (name: string) => {
    const found = text.split('\n').find((one) => one.startsWith(`# ${name}: `));
    if (found === undefined) throw new Problem('no-request');
    return found.slice(name.length + 4).trim();
  };
  const to = parseLink(line('bot'));
  const identity = nip19.decode(line('one-time identity'));
  const asked = Date.parse(line('asked')) / 1000;
  if (to === undefined || identity.type !== 'nsec' || !Number.isInteger(asked)) {
    throw new Problem('no-request');
  }
  return { to, half: parseHalf(text), identity: identity.data, patterns: parsePatterns(line('prefixes')), asked };
}
