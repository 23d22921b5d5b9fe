// The bot's public information: its name, the relays it reads (kind 10050), its speed.

import { nip19, type NostrEvent } from 'nostr-tools';
import { ratesIn, type Rates } from './estimate';
import { LOOKUP_RELAYS, relayUrls, type BotLink } from './link';
import { look } from './relays';

export interface Bot {
  readonly link: BotLink;
  readonly name: string;
  /** The bot's speed, if its status tells it. */
  readonly rates?: Rates;
  /** False where no relay could be reached. */
  readonly reached: boolean;
}

const TIMEOUT = 10_000;

export function npubOfBot(link: BotLink): string {
  return nip19.npubEncode(link.bot);
}

/** Looks the bot up. Its relays are those of its list, or those of its link if it has no list. */
export async function findBot(link: BotLink): Promise<Bot> {
  const start = link.relays.length > 0 ? link.relays : LOOKUP_RELAYS;
  const kinds = [0, 10002, 10050, 30315];
  const filters = [{ kinds, authors: [link.bot] }];
  const hasList = (events: readonly NostrEvent[]) => newest(events, 10050) !== undefined;
  const found = await look(start, filters, hasList, TIMEOUT);
  let { events } = found;
  const published = relayUrls(tagged(newest(events, 10002), 'r')).filter((url) => !start.includes(url));
  if (!hasList(events) && published.length > 0) {
    events = [...events, ...(await look(published, filters, hasList, TIMEOUT)).events];
  }
  const inbox = relayUrls(tagged(newest(events, 10050), 'relay'));
  const rates = ratesIn(newest(events, 30315)?.content ?? '');
  return {
    link: { bot: link.bot, relays: inbox.length > 0 ? inbox : start },
    name: nameIn(newest(events, 0)?.content),
    reached: found.reached > 0,
    ...(rates !== undefined && { rates }),
  };
}

function newest(events: readonly NostrEvent[], kind: number): NostrEvent | undefined {
  const now = Date.now() / 1000;
  const alive = (event: NostrEvent) => {
    const end = Number(event.tags.find(([name]) => name === 'expiration')?.[1] ?? Infinity);
    return event.kind === kind && !(end < now);
  };
  return events.filter(alive).sort((one, other) => other.created_at - one.created_at)[0];
}

function tagged(event: NostrEvent | undefined, name: string): string[] {
  return (event?.tags ?? []).filter(([tag]) => tag === name).map(([, value]) => value ?? '');
}

function nameIn(profile: string | undefined): string {
  try {
    const { display_name: shown, name } = JSON.parse(profile ?? '{}') as Record<string, unknown>;
    const given = [shown, name].find((one) => typeof one === 'string' && one.trim() !== '');
    return given === undefined ? 'the bot' : String(given).trim().slice(0, 40);
  } catch {
    return 'the bot';
  }
}
