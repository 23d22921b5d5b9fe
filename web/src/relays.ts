// Connections to relays. One loop for each relay connects, listens and sends, and begins again when
// the connection ends.

import type { Filter, NostrEvent } from 'nostr-tools';
import { Relay } from 'nostr-tools/relay';

const CONNECT_TIMEOUT = 15_000;
const PUBLISH_TIMEOUT = 20_000;
/** Pauses before connecting again, milliseconds; the last one repeats. */
const PAUSES: readonly number[] = [500, 1000, 2000, 4000, 8000, 15_000, 30_000];
/** The most events taken from one relay in one connection. It is closed if the relay sends more. */
const MOST_EVENTS = 1000;

type Sign = NonNullable<Relay['onauth']>;

export interface Line {
  readonly filters: Filter[];
  /** Events of the filters, with valid signatures; the same one may come several times. */
  readonly onEvent: (event: NostrEvent) => void;
  /** Number of connected relays, at every change. */
  readonly onConnected?: (connected: number) => void;
  /** A relay has sent all it had stored. */
  readonly onStored?: () => void;
  /** Answers a relay's challenge (NIP-42). */
  readonly onauth?: Sign;
}

/**
 * Standing connections to a few relays. An event is sent again after each reconnection, until one
 * relay takes it.
 */
export class Lines {
  private readonly up = new Set<Relay>();
  private readonly waiting = new Map<string, { event: NostrEvent; taken: (accepted: boolean) => void }>();
  private readonly wakers = new Set<() => void>();
  private closed = false;

  constructor(
    urls: readonly string[],
    private readonly line: Line,
  ) {
    for (const url of urls) void this.keepUp(url);
    addEventListener('online', this.wake);
    document.addEventListener('visibilitychange', this.wake);
  }

  /** Sends an event to all relays. Resolves at the first relay's OK. */
  send(event: NostrEvent): Promise<void> {
    return new Promise((done) => {
      const taken = (accepted: boolean) => {
        if (accepted && this.waiting.delete(event.id)) done();
      };
      this.waiting.set(event.id, { event, taken });
      for (const relay of this.up) void this.publish(relay, event).then(taken);
    });
  }

  close(): void {
    this.closed = true;
    removeEventListener('online', this.wake);
    document.removeEventListener('visibilitychange', this.wake);
    for (const relay of this.up) hangUp(relay);
    this.wake();
  }

  /** Ends every pause, because the network is back or the page was shown or hidden. */
  private readonly wake = (): void => {
    for (const waker of this.wakers) waker();
  };

  private async keepUp(url: string): Promise<void> {
    for (let failures = 0; !this.closed; failures++) {
      if (await this.once(url)) failures = 0;
      if (!this.closed) await this.pause(PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 0);
    }
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((done) => {
      const end = () => {
        clearTimeout(timer);
        this.wakers.delete(end);
        done();
      };
      const timer = setTimeout(end, milliseconds);
      this.wakers.add(end);
    });
  }

  /** Keeps one connection until it ends. Returns whether there was one. */
  private async once(url: string): Promise<boolean> {
    const relay = newRelay(url, this.line.onauth);
    const ended = new Promise<void>((done) => (relay.onclose = done));
    try {
      await relay.connect({ timeout: CONNECT_TIMEOUT });
    } catch {
      relay.close();
      return false;
    }
    if (this.closed) {
      hangUp(relay);
      return true;
    }
    this.change(() => this.up.add(relay));
    listen(relay, this.line);
    for (const { event, taken } of this.waiting.values()) void this.publish(relay, event).then(taken);
    await ended;
    this.change(() => this.up.delete(relay));
    return true;
  }

  private change(act: () => void): void {
    act();
    this.line.onConnected?.(this.up.size);
  }

  private async publish(relay: Relay, event: NostrEvent): Promise<boolean> {
    try {
      await relay.publish(event);
      return true;
    } catch (error) {
      if (!String(error).includes('auth-required') || !this.line.onauth) return false;
    }
    try {
      await relay.auth(this.line.onauth);
      await relay.publish(event);
      return true;
    } catch {
      return false;
    }
  }
}

function newRelay(url: string, onauth?: Sign): Relay {
  const relay = new Relay(url);
  relay.publishTimeout = PUBLISH_TIMEOUT;
  relay.onnotice = () => {};
  if (onauth) relay.onauth = onauth;
  return relay;
}

function listen(relay: Relay, line: Line, mayAuthenticate = true): void {
  let left = MOST_EVENTS;
  relay.subscribe(line.filters, {
    // The library's own reconnection would ask only for wraps dated later than the last. Gift wraps
    // are backdated, so every connection asks for all.
    onevent: (event) => {
      if (left-- > 0) line.onEvent(event);
      else relay.close();
    },
    oneose: () => line.onStored?.(),
    onclose: (reason) => {
      if (!reason.startsWith('auth-required') || !line.onauth || !mayAuthenticate) return;
      relay.auth(line.onauth).then(() => listen(relay, line, false)).catch(() => relay.close());
    },
  });
}

/**
 * Closes a connection, its subscriptions first. Their last messages are sent a moment later, while
 * the connection is still there.
 */
function hangUp(relay: Relay): void {
  for (const subscription of relay.openSubs.values()) subscription.close();
  setTimeout(() => relay.close(), 0);
}

/**
 * Asks relays for stored events; resolves when all have answered, or `enough` says so, or the time
 * is up.
 */
export function look(
  urls: readonly string[],
  filters: Filter[],
  enough: (events: readonly NostrEvent[]) => boolean,
  timeout: number,
): Promise<{ events: NostrEvent[]; reached: number }> {
  return new Promise((done) => {
    const events: NostrEvent[] = [];
    const relays = urls.map((url) => newRelay(url));
    let open = relays.length;
    let reached = 0;
    let finished = false;
    const finish = () => {
      if (finished) return;
      finished = true;
      clearTimeout(timer);
      for (const relay of relays) hangUp(relay);
      done({ events, reached });
    };
    const timer = setTimeout(finish, timeout);
    if (open === 0) finish();
    for (const relay of relays) {
      const left = () => {
        open--;
        if (open === 0 || enough(events)) finish();
      };
      relay.connect({ timeout }).then(() => {
        reached++;
        listen(relay, { filters, onEvent: (event) => events.push(event), onStored: left });
      }, left);
    }
  });
}
