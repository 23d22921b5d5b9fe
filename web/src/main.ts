// The page begins here. With a bot in its address it asks that bot. Without one it connects to
// nothing.

import { losesRequest, resume, startAsking } from './ask';
import { attempt, input, onSubmit, say, show, the } from './dom';
import { offerToInstall, ownHash } from './install';
import { startKeeping } from './keeping';
import { startKeyCard } from './key-card';
import { parseLink, type BotLink } from './link';
import { losesHalf, startManual } from './manual';
import { allowOnly } from './policy';

function linked(): BotLink | undefined {
  try {
    return parseLink(location.hash);
  } catch {
    return undefined;
  }
}

function withoutBot(): void {
  allowOnly([]);
  say('connects', 'No bot is named in its address, so it connects to nothing: its content security policy forbids it.');
  the('manual', HTMLDetailsElement).open = true;
  show('no-bot', true);
  onSubmit('name-bot', () =>
    attempt('bot-error', ['bot'], () => {
      const pasted = input('bot').value;
      if (parseLink(pasted) === undefined) throw new Error('No bot is named here. Paste the bot’s npub1… or its link.');
      location.hash = `#${pasted.slice(pasted.lastIndexOf('#') + 1).trim()}`;
    }),
  );
}

const hash = ownHash();
const link = linked();
startKeyCard();
startManual();
if (link === undefined) withoutBot();
else {
  startKeeping(resume);
  startAsking(link);
}
offerToInstall();
say('own-hash', hash);

addEventListener('beforeunload', (event) => {
  if (losesHalf() || losesRequest()) event.preventDefault();
});
// The address names another bot now, and the policy does not allow that bot's relays.
addEventListener('hashchange', () => location.reload());
// In the back-forward cache the page would live on after it was left, so it starts anew.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
