// The pure parts of asking: links, relays' addresses, durations, the bot's words, saved requests,
// gift wraps.

import { finalizeEvent, generateSecretKey, getPublicKey, nip19, nip44, nip59, type NostrEvent } from 'nostr-tools';
import { describe, expect, it } from 'vitest';
import { understand } from '../src/answers';
import { newest } from '../src/bot';
import { chanceAfter, duration, expectedIn, odds, ratesIn, takes } from '../src/estimate';
import { decrypted, encrypted, LARGEST_FILE } from '../src/keep';
import { pointHex } from '../src/key';
import { MOST_RELAYS, parseLink, relayUrls } from '../src/link';
import { asker, fromLines, inboxList, newRequest, opened, splitMessage, toLines, wrapped } from '../src/request';

const botSecret = generateSecretKey();
const bot = getPublicKey(botSecret);
const npub = nip19.npubEncode(bot);
const relays = ['wss://one.example/', 'ws://127.0.0.1:7777/'];

describe('the link', () => {
  it('names a bot by npub or nprofile, with or without relays', () => {
    expect(parseLink(`#${npub}`)).toEqual({ bot, relays: [] });
    expect(parseLink(`#${nip19.nprofileEncode({ pubkey: bot, relays })}`)).toEqual({ bot, relays });
    expect(parseLink(`#${npub}&relay=wss://one.example&relay=ws%3A%2F%2F127.0.0.1%3A7777`)).toEqual({ bot, relays });
    expect(parseLink(` https://bot.example/page#${npub.toUpperCase()} `)).toEqual({ bot, relays: [] });
    expect(parseLink(`nostr:${npub}`)).toEqual({ bot, relays: [] });
    expect(parseLink('#')).toBeUndefined();
  });

  it('is refused when it is damaged, a secret, or something else', () => {
    expect(() => parseLink(`#${npub.slice(0, -1)}${npub.endsWith('q') ? 'p' : 'q'}`)).toThrow(/damaged/);
    expect(() => parseLink(nip19.nsecEncode(botSecret))).toThrow(/secret key/);
    expect(() => parseLink('hello')).toThrow(/No bot/);
  });

  it('takes few relays, and none that could widen the content security policy', () => {
    const many = Array.from({ length: 40 }, (_, at) => `wss://relay${at}.example`);
    expect(relayUrls(many)).toHaveLength(MOST_RELAYS);
    const bad = ["wss://a.example; script-src 'unsafe-inline'", 'wss://a.example *', 'https://a.example', 'wss://u:p@a.example',
      'wss://*.example/', 'wss:', `wss://${'a'.repeat(300)}.example`, 'javascript:alert(1)', 'wss://a.example,b'];
    expect(relayUrls(bad)).toEqual([]);
    expect(relayUrls(['wss://A.example', 'wss://a.example/'])).toEqual(['wss://a.example/']);
  });
});

describe('times and odds', () => {
  it('are said as people say them', () => {
    expect([0.3, 1, 4.4, 119, 180, 7200, 12_000, 777_600, 63_072_000, 3.6e12, 1e30].map(duration)).toEqual([
      'less than a second', '1 second', '4 seconds', '119 seconds', '3 min', '2 h', '3 h 20 min', '9 days', '2 years',
      '110,000 years', '1,000,000 years',
    ]);
    expect([5, 20, 35, 60, 90].map(odds)).toEqual([
      'About 1 key in 32 fits.', 'About 1 key in 1 million fits.', 'About 1 key in 34 billion fits.',
      'About 1 key in 1.2 quintillion fits.', '',
    ]);
    // As the bot says them (`src/bot/phrases.rs`).
    expect([0.05, 0.3, 2, 430, 60, 12_000, 777_600].map(takes)).toEqual([
      'less than a second', 'less than a second, rarely more than 1 second', 'about 2 seconds, rarely more than 6',
      'about 7 min, rarely more than 21', 'about 60 seconds, rarely more than 3 min',
      'about 3 h 20 min, rarely more than 9 h 59 min', 'about 9 days, rarely more than 27',
    ].map((time) => `That takes ${time}.`));
    expect(chanceAfter(10, 10)).toBeCloseTo(0.632, 3);
    expect([chanceAfter(-5, 10), chanceAfter(1, 0)]).toEqual([0, 0]);
  });

  it('are found in a live status of either form, and in an acceptance', () => {
    const times = '6, 7, 8 characters take about';
    expect(ratesIn(`ready; 85.0 M/s keys tested; ${times} 13, 404, 12935 s`)).toEqual({ starts: 85e6 });
    expect(ratesIn(`ready; 85.0 M/s keys tested; ${times} 13 s, 7 min, 3.6 h; 9.0 M/s for endings`)).toEqual({
      starts: 85e6,
      whole: 9e6,
    });
    expect(ratesIn('110 G/s; nothing longer than 3 h 20 min')).toEqual({ starts: 110e9, longest: 12_000 });
    expect(ratesIn('110 G/s; 9.0 G/s for endings; nothing longer than 24 h')?.longest).toBe(86_400);
    expect(ratesIn('110 G/s')).toEqual({ starts: 110e9 });
    expect(ratesIn(`searching; ${times} 13 s, 7 min, 3.6 h`)?.starts).toBeCloseTo(32 ** 6 / 13);
    expect(ratesIn(`${times} 2 min, 1 h, 2 days`)?.starts).toBeCloseTo(32 ** 6 / 120);
    expect(ratesIn('asleep; what you send now is answered when I wake up')).toBeUndefined();
    expect(expectedIn('About 1 key in 1.1 billion fits: about 2 seconds, rarely more than 6')).toBe(2);
    expect(expectedIn('At 85 M/s that takes about 3 h 20 min; in 95 of 100 cases at most 10 h')).toBe(12_000);
    expect(expectedIn('that takes less than a second')).toBe(0.5);
    expect(expectedIn('Nothing was started.')).toBeUndefined();
  });
});

describe('the bot’s events', () => {
  it('count if they are neither over nor dated ahead of now', () => {
    const dated = (created_at: number, tags: string[][] = []) => ({ kind: 10050, created_at, tags }) as unknown as NostrEvent;
    const now = 1_790_000_000;
    const [old, late] = [dated(now - 50), dated(now - 5)];
    expect(newest([old, dated(now + 3600), late, dated(now - 1, [['expiration', String(now)]])], 10050, now + 1)).toBe(late);
    expect(newest([dated(now + 86_400)], 10050, now)).toBeUndefined();
    const over = dated(now - 900, [['expiration', String(now - 1)]]);
    expect([newest([over], 10050, now), newest([over], 10050, now, false)]).toEqual([undefined, over]);
  });
});

describe('the bot’s words', () => {
  const message = (text: string, at: number) => ({ id: `${at}${text.slice(0, 5)}`, text, at });

  it('are an acceptance where a job is named first, in whatever order they arrive', () => {
    const [accepted, explained] = [message('Job #7: searching. about 4 seconds', 20), message('Job #7 is done', 30)];
    const talk = understand([message('ntweak1qqq', 31), explained, accepted]);
    expect(talk).toMatchObject({ job: '7', expected: 4, accepted: 20, result: 'ntweak1qqq', latest: explained });
    expect(understand([accepted, explained]).result).toBeUndefined();
    expect(understand([message('ジョブ #12 を開始しました', 1)]).job).toBe('12');
    expect(understand([message('job 12: searching', 1)]).job).toBe('12');
  });

  it('are no acceptance where they refuse', () => {
    const refusals = ['That would take about 103 min', 'You have 3 open jobs (#1, #2)', 'This half has served already',
      'I am searching for exactly that already, as job #1. Send status to see how it goes'];
    for (const text of refusals) {
      expect(understand([message(text, 1)])).toMatchObject({ latest: { text } });
      expect(understand([message(text, 1)]).job).toBeUndefined();
    }
    expect(understand([])).toEqual({});
  });
});

describe('a request', () => {
  const request = newRequest({ bot, relays }, ['m0c', 'cat'], 1_790_000_000_123);

  it('asks with a point and an identity of its own, never twice the same', () => {
    const other = newRequest({ bot, relays }, ['m0c']);
    expect(other.half).not.toBe(request.half);
    expect(asker(other)).not.toBe(asker(request));
    expect(asker(request)).not.toBe(pointHex(request.half).slice(2));
    expect(splitMessage(request.half, request.patterns)).toBe(`split ${pointHex(request.half)} m0c cat`);
    expect(inboxList(request).tags).toEqual(relays.map((relay) => ['relay', relay]));
  });

  it('is the same message when it is sent again', () => {
    const rumor = () => nip59.unwrapEvent(wrapped(request, 'split', request.asked), botSecret);
    expect(rumor().id).toBe(rumor().id);
    expect(rumor()).toMatchObject({ kind: 14, content: 'split', pubkey: asker(request), created_at: 1_790_000_000 });
    expect(wrapped(request, 'split', request.asked).id).not.toBe(wrapped(request, 'split', request.asked).id);
  });

  it('hears its bot, and nobody else', () => {
    const to = asker(request);
    const say = (secret: Uint8Array, event = {}) =>
      opened(request, nip59.wrapEvent({ kind: 14, content: 'hello', created_at: 5, ...event }, secret, to));
    expect(say(botSecret)).toMatchObject({ text: 'hello', at: 5 });
    expect(say(generateSecretKey())).toBeUndefined();
    expect(say(botSecret, { kind: 7 })).toBeUndefined();
    expect(say(botSecret, { content: 'x'.repeat(60_000) })).toBeUndefined();
    // A stranger's seal around a rumor that claims to be the bot's.
    const stranger = generateSecretKey();
    const rumor = nip59.createRumor({ kind: 14, content: 'forged', created_at: 5 }, botSecret);
    expect(opened(request, nip59.createWrap(nip59.createSeal(rumor, stranger, to), to))).toBeUndefined();
    // The bot's seal with its signature broken.
    const seal = nip59.createSeal(rumor, botSecret, to);
    expect(opened(request, nip59.createWrap({ ...seal, sig: 'f'.repeat(128) }, to))).toBeUndefined();
    const key = generateSecretKey();
    const content = nip44.encrypt('no JSON', nip44.getConversationKey(key, to));
    const wrap = finalizeEvent({ kind: 1059, content, created_at: 5, tags: [['p', to]] }, key);
    expect(opened(request, wrap)).toBeUndefined();
  });

  it('survives encryption, and only with its passphrase', async () => {
    const file = await encrypted(toLines(request), 'correct horse');
    expect(Buffer.from(file).toString('latin1')).toMatch(/^age-encryption\.org\/v1\n-> scrypt \S+ 16\n/);
    expect(fromLines(await decrypted(file, 'correct horse'))).toEqual(request);
    await expect(decrypted(file, 'wrong')).rejects.toThrow('Wrong passphrase');
    await expect(decrypted(file.slice(0, 60), 'correct horse')).rejects.toThrow(/damaged/);
    await expect(decrypted(new Uint8Array(LARGEST_FILE + 1), 'x')).rejects.toThrow(/too large/);
    await expect(encrypted(toLines(request), '')).rejects.toThrow(/no passphrase/);
  }, 60_000);

  it('is not read from other texts, and no secret stands in the error', () => {
    const lines = toLines(request);
    expect(fromLines(lines)).toEqual(request);
    for (const name of ['prefixes', 'bot', 'one-time identity', 'asked']) {
      const without = lines.split('\n').filter((line) => !line.startsWith(`# ${name}:`)).join('\n');
      expect(() => fromLines(without)).toThrow(/not a saved request/);
    }
    const damaged = lines.replace(/nhalf1\S{9}/, (found) => `${found.slice(0, -1)}b`);
    expect(() => fromLines(damaged)).toThrow(/damaged/);
    expect(() => fromLines(damaged)).not.toThrow(/[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{20}/);
  });
});
