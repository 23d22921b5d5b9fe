// The page begins here. With a bot in its address it asks that bot. Without one it connects to
// nothing.

import { draw, losesRequest, resume, showStart, startAsking, startOver } from './ask';
import { attempt, element, fillTexts, input, onSubmit, say, show, textOf, the } from './dom';
import { offerToInstall, ownHash } from './install';
import { listKept, startKeeping } from './keeping';
import { losesKey, restoreKey, startKeyCard } from './key-card';
import { parseLink, type BotLink } from './link';
import { clearManual, losesHalf, startManual } from './manual';
import { allowOnly } from './policy';
import { describe } from './prefix-field';
import { chooseLanguage, language, languageName, LANGUAGES, Problem, tell } from './texts';

/** The bot in the address. What is wrong with the address is said on the page. */
function linkedBot(): BotLink | undefined {
  try {
    return parseLink(location.hash);
  } catch (error) {
    if (/nsec1/i.test(location.hash)) {
      // Out of the address bar, the history entry, and the reach of who looks over a shoulder.
      history.replaceState(null, '', location.pathname);
      say('link-problem', () => tell('address-nsec'));
    } else say('link-problem', textOf(error));
    return undefined;
  }
}

function startWithoutBot(): void {
  allowOnly([]);
  say('connects', () => tell('connects-nothing'));
  the('manual', HTMLDetailsElement).open = element('link-problem').textContent === '';
  show('no-bot', true);
  onSubmit('name-bot', () =>
    attempt('bot-error', ['bot'], () => {
      const pasted = input('bot').value;
      if (parseLink(pasted) === undefined) throw new Problem('link-none');
      location.hash = `#${pasted.slice(pasted.lastIndexOf('#') + 1).trim()}`;
    }),
  );
}

function offerLanguages(): void {
  const choice = the('language', HTMLSelectElement);
  choice.append(...LANGUAGES.map((code) => {
    const option = new Option(languageName(code), code, false, code === language());
    option.lang = code;
    return option;
  }));
  choice.addEventListener('change', () => {
    chooseLanguage(choice.value);
    fillTexts();
    draw();
    describe();
    listKept();
  });
}

fillTexts();
offerLanguages();
const link = linkedBot();
startKeyCard((request) => {
  clearManual();
  if (link !== undefined) startOver(request);
});
startManual();
if (link === undefined) startWithoutBot();
else {
  startKeeping(resume);
  startAsking(link);
}
if (restoreKey() && link !== undefined) showStart(false);
offerToInstall();
say('own-hash', ownHash);

let leaving = false;
const losesSomething = () => !leaving && (losesHalf() || losesRequest() || losesKey());

addEventListener('beforeunload', (event) => {
  if (losesSomething()) event.preventDefault();
});
// The address names another bot now, and the policy does not allow that bot's relays.
addEventListener('hashchange', (event) => {
  if (losesSomething() && !confirm(tell(losesKey() ? 'leave-key' : 'leave-half'))) {
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
