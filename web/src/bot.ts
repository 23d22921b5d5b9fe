// The bot's public information: its name, the relays it reads (kind 10050), its speed.

import type { NostrEvent } from 'nostr-tools';
import * as nip19 from 'nostr-tools/nip19';
import { ratesIn, type Rates } from './estimate';
import { LOOKUP_RELAYS, relayUrls, type BotLink } from './link';
import { look } from './relays';

export interface Bot {
  readonly link: BotLink;
  /** Empty if its profile has none. */
  readonly name: string;
  /** The bot's speed and limit, if its status tells them. */
  readonly rates?: Rates;
  /** Whether its last status says that it is offline, or has ended. */
  readonly asleep: boolean;
  /** SHA-256 of the page that its signed announcement names. */
  readonly page?: string;
  /** False where no relay could be reached. */
  readonly reached: boolean;
}

/** Seconds by which an event may be dated ahead of this machine's clock. */
const CLOCK_TOLERANCE = 300;
const TIMEOUT = 10_000;

export function npubOfBot(link: BotLink): string {
  return nip19.npubEncode(link.bot);
}

/** Looks the bot up. Its relays are those of its list, or those of its link if it has no list. */
export async function findBot(link: BotLink): Promise<Bot> {
  const start = link.relays.length > 0 ? link.relays : LOOKUP_RELAYS;
  const kinds = [0, 10002, 10050, 30315, 31990];
  const filters = [{ kinds, authors: [link.bot] }];
  const hasList = (events: readonly NostrEvent[]) => newest(events, 10050) !== undefined;
  const found = await look(start, filters, hasList, TIMEOUT);
  let { events } = found;
  const published = relayUrls(tagged(newest(events, 10002), 'r')).filter((url) => !start.includes(url));
  if (!hasList(events) && published.length > 0) {
    events = [...events, ...(await look(published, filters, hasList, TIMEOUT)).events];
  }
  const inbox = relayUrls(tagged(newest(events, 10050), 'relay'));
  const status = newest(events, 30315);
  const hasEnded = newest(events, 30315, Date.now() / 1000, false) !== undefined;
  const rates = ratesIn(status?.content ?? '');
  const page = tagged(newest(events, 31990), 'x')[0];
  return {
    link: { bot: link.bot, relays: inbox.length > 0 ? inbox : start },
    name: nameIn(newest(events, 0)?.content),
    asleep: status === undefined ? hasEnded : status.content.startsWith('asleep'),
    reached: found.reached > 0,
    ...(rates !== undefined && { rates }),
    ...(page !== undefined && { page }),
  };
}

/** The newest event of a kind that is not dated ahead of now, nor over if it must be alive. */
export function newest(
  events: readonly NostrEvent[],
  kind: number,
  now = Date.now() / 1000,
  mustBeAlive = true,
): NostrEvent | undefined {
  const isValid = (event: NostrEvent) => {
    const end = Number(event.tags.find(([name]) => name === 'expiration')?.[1] ?? Infinity);
    return event.kind === kind && !(mustBeAlive && end < now) && event.created_at <= now + CLOCK_TOLERANCE;
  };
  return events.filter(isValid).sort((one, other) => other.created_at - one.created_at)[0];
}

function tagged(event: NostrEvent | undefined, name: string): string[] {
  return (event?.tags ?? []).filter(([tag]) => tag === name).map(([, value]) => value ?? '');
}

function nameIn(profile: string | undefined): string {
  try {
    const { display_name: shown, name } = JSON.parse(profile ?? '{}') as Record<string, unknown>;
    const given = [shown, name].find((one) => typeof one === 'string' && one.trim() !== '');
    return String(given ?? '').trim().slice(0, 40);
  } catch {
    return '';
  }
}
