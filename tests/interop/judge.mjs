// Checks the bot's answers for all clients, and builds the one line that they print. The nsec is
// never printed.
import { writeSync } from 'node:fs';
import * as nip19 from 'nostr-tools/nip19';
import { getPublicKey } from 'nostr-tools/pure';

export const { RELAY, BOT, REQUEST, SUBJECT } = process.env;

/** A rumor of the bot: does it answer this request, in this conversation? */
function isThreaded(rumor, requestId, asker) {
  const has = (name, value) => rumor.tags.some((tag) => tag[0] === name && tag[1] === value);
  return rumor.kind === 14 && rumor.pubkey === BOT && has('e', requestId) && has('p', asker) && (!SUBJECT || has('subject', SUBJECT));
}

/** Prints what was seen and ends the program: 0 if acceptance and key came as they should. */
export function judge(client, rumors, requestId, asker) {
  const acceptance = rumors.find((rumor) => rumor.content.includes('searching for'));
  const result = rumors.find((rumor) => /^nsec1/m.test(rumor.content));
  const nsec = result?.content.match(/^nsec1\w+$/m)?.[0];
  const npub = nsec && nip19.npubEncode(getPublicKey(nip19.decode(nsec).data));
  const seen = {
    client,
    accepted: Boolean(acceptance),
    threaded: rumors.every((rumor) => isThreaded(rumor, requestId, asker)),
    messages: rumors.length,
    key_fits: Boolean(npub?.startsWith(`npub1${REQUEST}`)),
    npub_named: Boolean(npub && rumors.some((rumor) => rumor.content.includes(npub))),
    key_alone: result?.content === nsec,
  };
  writeSync(1, `${JSON.stringify(seen)}\n`);
  process.exit(seen.accepted && seen.threaded && seen.key_fits && seen.npub_named && seen.key_alone ? 0 : 1);
}

/** The whole conversation has come. */
export const isOver = (rumors) => rumors.some((rumor) => /^nsec1/m.test(rumor.content)) && rumors.length >= 3;

/** Asks again until there is an answer: the bot may just be starting. */
export async function eventually(ask) {
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
