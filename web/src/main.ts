// The page begins here. With a bot in its address it asks that bot. Without one it connects to
// nothing.

import { losesRequest, resume, showStart, startAsking, startOver } from './ask';
import { attempt, input, onSubmit, say, show, the } from './dom';
import { offerToInstall, ownHash } from './install';
import { startKeeping } from './keeping';
import { losesKey, restoreKey, startKeyCard } from './key-card';
import { parseLink, type BotLink } from './link';
import { clearManual, losesHalf, startManual } from './manual';
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
startKeyCard((request) => {
  clearManual();
  if (link !== undefined) startOver(request);
});
startManual();
if (link === undefined) withoutBot();
else {
  startKeeping(resume);
  startAsking(link);
}
if (restoreKey() && link !== undefined) showStart(false);
offerToInstall();
say('own-hash', hash);

let leaving = false;
const losesSomething = () => !leaving && (losesHalf() || losesRequest() || losesKey());

addEventListener('beforeunload', (event) => {
  if (losesSomething()) event.preventDefault();
});
// The address names another bot now, and the policy does not allow that bot's relays.
addEventListener('hashchange', (event) => {
  if (losesSomething() && !confirm(`${lossText()} Follow the changed address?`)) {
    history.replaceState(null, '', event.oldURL);
    return;
  }
  leaving = true;
  location.reload();
});
// In the back-forward cache the page would live on after it was left, so it starts anew.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});

function lossText(): string {
  return losesKey() ? 'You have not copied, shown or saved your key.' : 'Your half is not kept. The answer to it would be lost.';
}
