// The page asks a real `npubbot serve` beside many split jobs of others: it does the work that the
// bot asks for, and gets its key.

import { generateSecretKey, nip19, type NostrEvent } from 'nostr-tools';
import { describe, expect, it } from 'vitest';
import { randomHalf } from '../src/key';
import { splitMessage, wrapped, type AskRequest } from '../src/request';
import { camera, until } from './harness';
import { missing, npubOf, sayWhatIsMissing, stage } from './stage';

sayWhatIsMissing('the work that a bot with many split jobs asks for');

/** Open split jobs of others from which a further one costs work. */
const MANY = 16;
/** Open jobs that a bot accepts from one asker. */
const EACH = 3;

/** Runs in the page: sends events to a relay and waits until it has said OK to each. */
async function publish({ url, wraps }: { url: string; wraps: NostrEvent[] }): Promise<void> {
  const socket = new WebSocket(url);
  let left = wraps.length;
  await new Promise<void>((done, failed) => {
    socket.onerror = () => failed(new Error('no relay'));
    socket.onopen = () => wraps.forEach((wrap) => socket.send(JSON.stringify(['EVENT', wrap])));
    socket.onmessage = ({ data }) => {
      if (String(data).startsWith('["OK"')) left -= 1;
      if (left === 0) done();
    };
  });
  socket.close();
}

describe.skipIf(missing.length > 0)('asking a bot that asks for work', { timeout: 90_000 }, () => {
  const at = stage();

  it('does the work in a worker, shows how far it is, and gets the key', async () => {
    const shot = camera('work');
    await at.arrive();
    const asked = Math.floor(Date.now() / 1000);
    const to = { bot: nip19.decode(at.bot.npub as `npub1${string}`).data, relays: [at.relay.url] };
    const wraps: NostrEvent[] = [];
    for (let job = 0, identity = generateSecretKey(); job < MANY; job += 1) {
      if (job % EACH === 0) identity = generateSecretKey();
      const request: AskRequest = { to, half: randomHalf(), identity, patterns: ['qqqqqqqq'], asked };
      wraps.push(wrapped(request, splitMessage(request.half, request.patterns), asked));
    }
    // Through the browser: not every Node.js has a WebSocket.
    await at.page.evaluate(publish, { url: at.relay.url, wraps });
    await until('the bot has them all', () => (at.bot.accepted() === MANY ? true : undefined));
    await at.ask('cat');
    await at.says('#state', /wants some work first|The work is done|is searching/);
    await shot(at.page, 'mining');
    await at.keyIsThere();
    expect(await at.npub()).toMatch(/^npub1cat/);
    expect(npubOf(await at.shownNsec())).toBe(await at.npub());
    expect(await at.page.textContent('#bot-words')).toMatch(/#17/);
  });
});

describe.skipIf(missing.length > 0)('asking a bot whom a flood has reached', { timeout: 90_000 }, () => {
  const at = stage(['new_askers_per_minute = 1', 'flood_work_bits = 12']);

  it('does the work of the gift wrap, as any client would', async () => {
    await at.arrive();
    await at.ask('cat');
    await at.keyIsThere();
    await at.page.locator('#show-nsec').click();
    await at.page.locator('#forget').click();
    // The second new asker of this minute.
    await at.ask('dad');
    await at.keyIsThere();
    expect(await at.npub()).toMatch(/^npub1dad/);
    expect(await at.page.textContent('#bot-words')).toMatch(/^Job #2/);
  });
});
