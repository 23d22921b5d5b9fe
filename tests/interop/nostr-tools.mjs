// An asker with nostr-tools.
import WebSocket from 'ws';
import { SimplePool, useWebSocketImplementation } from 'nostr-tools/pool';
import { finalizeEvent, generateSecretKey, getPublicKey } from 'nostr-tools/pure';
import * as nip17 from 'nostr-tools/nip17';
import * as nip59 from 'nostr-tools/nip59';
import { BOT, RELAY, SUBJECT, REQUEST, eventually, isOver, judge } from './judge.mjs';

useWebSocketImplementation(WebSocket);
const secret = generateSecretKey();
const asker = getPublicKey(secret);
const pool = new SimplePool();
// Relays may require their readers and writers to authenticate (NIP-42).
const onauth = (template) => Promise.resolve(finalizeEvent(template, secret));
const publish = (relays, event) => Promise.all(pool.publish(relays, event, { onauth }));
const fetchOne = (filter) =>
  new Promise((resolve) => {
    pool.subscribeEose([RELAY], filter, { onauth, onevent: resolve, onclose: () => resolve(null) });
  });

const now = () => Math.floor(Date.now() / 1000);
for (const [kind, tag] of [[10050, 'relay'], [10002, 'r']]) {
  await publish([RELAY], finalizeEvent({ kind, created_at: now(), tags: [[tag, RELAY]], content: '' }, secret));
}

// The relays where the bot reads messages: its own list, found through a discovery relay.
const list = await eventually(() => fetchOne({ kinds: [10050], authors: [BOT] }));
const botRelays = list.tags.filter((tag) => tag[0] === 'relay').map((tag) => tag[1]);

// Built step by step, because nip17.wrapEvent does not return the id of the rumor.
const tags = [['p', BOT, botRelays[0]], ...(SUBJECT ? [['subject', SUBJECT]] : [])];
const request = nip59.createRumor({ kind: 14, content: REQUEST, tags }, secret);
const wrap = nip59.createWrap(nip59.createSeal(request, secret, BOT), BOT);

const rumors = [];
pool.subscribe([RELAY], { kinds: [1059], '#p': [asker] }, {
  onauth,
  onevent(event) {
    const rumor = nip17.unwrapEvent(event, secret);
    if (rumors.every((known) => known.id !== rumor.id)) rumors.push(rumor);
    if (isOver(rumors)) judge('nostr-tools', rumors, request.id, asker);
  },
});
await publish(botRelays, wrap);
