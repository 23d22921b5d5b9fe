// The bot named in the page's address: `#npub1…` or `#nprofile1…`, with the relays to start from.

import * as nip19 from 'nostr-tools/nip19';
import { Problem } from './texts';

/** Relays taken from one link, or from one relay list of the bot. */
export const MOST_RELAYS = 6;

/** Relays that are asked for a bot's relay list if its link names no relay. */
export const LOOKUP_RELAYS: readonly string[] = [
  'wss://purplepag.es/',
  'wss://relay.damus.io/',
  'wss://nos.lol/',
  'wss://relay.primal.net/',
];

export interface BotLink {
  /** The bot's public key, hex. */
  readonly bot: string;
  /** Relays of the link, at most `MOST_RELAYS`; empty where it names none. */
  readonly relays: readonly string[];
}

/**
 * Reads the part of an address after `#`, or a pasted link, npub or nprofile. Further relays may
 * follow as `&relay=wss://…`. Returns `undefined` where no bot is named.
 */
export function parseLink(written: string): BotLink | undefined {
  const text = written.trim();
  const name = text.match(/\b(npub|nprofile)1[0-9a-z]+/i)?.[0]?.toLowerCase();
  if (name === undefined) {
    if (/\bnsec1/i.test(text)) throw new Problem('link-nsec');
    if (text === '' || text === '#') return undefined;
    throw new Problem('link-none');
  }
  const named = [...text.matchAll(/[?&#]relay=([^&#\s]+)/g)].map((found) => unescaped(found[1] ?? ''));
  let decoded;
  try {
    decoded = nip19.decode(name);
  } catch {
    throw new Problem('link-damaged');
  }
  if (decoded.type === 'npub') return { bot: decoded.data, relays: relayUrls(named) };
  if (decoded.type !== 'nprofile') throw new Problem('link-none');
  return { bot: decoded.data.pubkey, relays: relayUrls([...(decoded.data.relays ?? []), ...named]) };
}

/** The relay addresses among `texts`: normalised, each once, at most `MOST_RELAYS`. */
export function relayUrls(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => relayUrl(text) ?? []))].slice(0, MOST_RELAYS);
}

function relayUrl(text: string): string | undefined {
  // Anything but plain characters could end the directive of a content security policy.
  if (text.length > 200 || !/^wss?:\/\/[A-Za-z0-9.:[\]_~%/-]+$/i.test(text)) return undefined;
  try {
    const url = new URL(text);
    return url.username || url.password || url.hash || url.search ? undefined : url.href;
  } catch {
    return undefined;
  }
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
