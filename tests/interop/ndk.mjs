// An asker with NDK.
import WebSocket from 'ws';
import NDK, { NDKEvent, NDKPrivateKeySigner, NDKRelayAuthPolicies, NDKRelaySet, giftUnwrap, giftWrap } from '@nostr-dev-kit/ndk';
import { BOT, RELAY, SUBJECT, REQUEST, eventually, isOver, judge } from './judge.mjs';

globalThis.WebSocket ??= WebSocket;
const signer = NDKPrivateKeySigner.generate();
const ndk = new NDK({ explicitRelayUrls: [RELAY], signer, enableOutboxModel: false });
ndk.relayAuthDefaultPolicy = NDKRelayAuthPolicies.signIn({ ndk, signer });
await ndk.connect(5000);
const me = await signer.user();

async function publish(kind, tags, relays) {
  const event = new NDKEvent(ndk, { kind, tags, content: '', created_at: Math.floor(Date.now() / 1000), pubkey: me.pubkey });
  await twice(() => event.publish(relays));
}

/** NDK's first publish to a relay that demands AUTH fails, its second works. */
async function twice(send) {
  try {
    return await send();
  } catch {
    return await send();
  }
}

const ours = NDKRelaySet.fromRelayUrls([RELAY], ndk);
await publish(10050, [['relay', RELAY]], ours);
await publish(10002, [['r', RELAY]], ours);

const list = await eventually(() => ndk.fetchEvent({ kinds: [10050], authors: [BOT] }, { cacheUsage: 'ONLY_RELAY' }, ours));
const botRelays = list.getMatchingTags('relay').map((tag) => tag[1]);

const request = new NDKEvent(ndk, {
  kind: 14,
  content: REQUEST,
  tags: [['p', BOT], ...(SUBJECT ? [['subject', SUBJECT]] : [])],
  created_at: Math.floor(Date.now() / 1000),
  pubkey: me.pubkey,
});
const requestId = request.getEventHash();

const rumors = [];
const inbox = ndk.subscribe({ kinds: [1059], '#p': [me.pubkey] }, { closeOnEose: false }, ours);
inbox.on('event', async (event) => {
  const rumor = (await giftUnwrap(event)).rawEvent();
  if (rumors.every((known) => known.id !== rumor.id)) rumors.push(rumor);
  if (isOver(rumors)) judge('NDK', rumors, requestId, me.pubkey);
});
const wrap = await giftWrap(request, ndk.getUser({ pubkey: BOT }), signer, { rumorKind: 14 });
await twice(() => wrap.publish(NDKRelaySet.fromRelayUrls(botRelays, ndk)));
