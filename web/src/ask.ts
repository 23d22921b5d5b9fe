// Asking the bot: from the pattern to the key, through its relays, as a one-time identity.

import type { NostrEvent } from 'nostr-tools/pure';
import { MOST_MESSAGES, tweakIn, understand, type Conversation, type Message } from './answers';
import { findBot, npubOfBot } from './bot';
import { attempt, element, goTo, input, onClick, onSubmit, say, show, textOf, the } from './dom';
import { chanceAfter, duration } from './estimate';
import { ownHash } from './install';
import { answerOf, forget, keepAnswer } from './keep';
import { isKept, keepRequest, keptName, resetKeeping } from './keeping';
import { forgetKey, mayDropKey, showKey } from './key-card';
import type { BotLink } from './link';
import { mine, type Mining } from './mining';
import { nameOf, parsePatterns, timeOf } from './patterns';
import { allowOnly } from './policy';
import { clearPrefix, expectedFor, setRates, startPrefixField, takesTooLong } from './prefix-field';
import { Lines } from './relays';
import { asker, authenticates, inboxList, newRequest, opened, splitMessage, wrapped, type AskRequest } from './request';
import { language, LANGUAGES, Problem, tell } from './texts';
import { combine, parseTweak } from './tweak';
import { orderOf, workLine, type WorkWanted } from './work';

/** If the bot says nothing for this time, the page says that it may be offline. Milliseconds. */
const PATIENCE = 20_000;
/** The longest that the connections of a given-up request wait to deliver its `cancel`. */
const CANCEL_TIMEOUT = 20_000;

/** A request under way. */
interface Running {
  readonly request: AskRequest;
  readonly lines: Lines;
  readonly messages: Map<string, Message>;
  readonly timer: ReturnType<typeof setInterval>;
  readonly began: number;
  connected: number;
  sent: boolean;
  /** Whether a relay has taken the request. */
  taken: boolean;
  found: boolean;
  /** The proof of work under way or done, if the bot asked for it. */
  mining?: Mining;
  /** The bot's answer to a change of its language. It says nothing about the request. */
  languageSet?: string;
  /** Number of messages that were received before the bot was told to stop. */
  stopping?: number;
}

let to: BotLink | undefined;
let running: Running | undefined;

/** Whether somebody waits for the request under way, and leaving now would lose its answer. */
export function losesRequest(): boolean {
  return running !== undefined && isWaiting(running) && !isKept();
}

function isWaiting(now: Running): boolean {
  return !now.found && !hasStopped(now) && !isRefused(talkOf(now));
}

/** Whether the bot has answered since it was told to stop. */
function hasStopped(now: Running): boolean {
  return now.stopping !== undefined && now.messages.size > now.stopping;
}

function talkOf(now: Running): Conversation {
  return understand([...now.messages.values()]);
}

/** Whether the bot has answered, and not by starting a job or asking for work. */
function isRefused({ job, latest, work }: Conversation): boolean {
  return job === undefined && latest !== undefined && work === undefined;
}

/** Looks the bot up: its name, its relays, its speed and limit. */
async function find(link: BotLink): Promise<void> {
  show('retry-bot', false);
  say('bot-state', () => tell('searching-bot'));
  const bot = await findBot(link);
  if (!bot.reached) {
    say('bot-state', () => tell('relays-dead'));
    show('retry-bot', true);
    return;
  }
  to = bot.link;
  setRates(bot.rates);
  const relays = to.relays.map((relay) => new URL(relay).host).join(', ');
  const values = () => ({ bot: bot.name || tell('the-bot'), npub: npubOfBot(link).slice(0, 14), relays });
  say('bot-state', () => (bot.asleep ? tell('bot-asleep', { bot: values().bot }) : tell('bot-found', values())));
  const { page } = bot;
  if (page !== undefined) say('announced', () => (page === ownHash ? tell('about-same') : tell('about-other', { hash: page })));
}

function ask(): void {
  const patterns = parsePatterns(input('prefix').value);
  if (to === undefined) throw new Problem('bot-unknown');
  if (takesTooLong(patterns) || !mayDropKey()) return;
  resetKeeping(false);
  run(newRequest(to, patterns), true);
}

/** Goes on with a saved request. */
export function resume(request: AskRequest): void {
  if (!mayDropKey()) return;
  resetKeeping(true);
  run(request, false);
}

function run(request: AskRequest, fresh: boolean): void {
  leave();
  forgetKey();
  say('forgotten', '');
  show('clear-clipboard', false);
  // The policy can only be narrowed later. So it also allows the relays of the bot's list, for a
  // next request.
  const relays = [...new Set([...request.to.relays, ...(to?.relays ?? [])])];
  allowOnly(relays);
  const hosts = relays.map((relay) => new URL(relay).host).join(', ');
  say('connects', () => tell('connects-to', { relays: hosts }));
  const now: Running = {
    request,
    messages: new Map(),
    timer: setInterval(draw, 1000),
    began: Date.now(),
    connected: 0,
    sent: false,
    taken: false,
    found: false,
    lines: new Lines(request.to.relays, {
      filters: [{ kinds: [1059], '#p': [asker(request)] }],
      onEvent: (wrap) => read(now, wrap),
      onConnected: (connected) => {
        now.connected = connected;
        draw();
      },
      // A saved request may have been sent by the tab that saved it. Sent again, it is the same
      // message.
      onStored: () => {
        if (now.messages.size === 0) sendRequest(now);
      },
      onauth: authenticates(request),
    }),
  };
  running = now;
  void now.lines.send(inboxList(request));
  if (fresh) sendRequest(now);
  say('waiting-title', () => tell('request-title', { patterns: request.patterns.map(nameOf).join(' ') }));
  say('waiting-problem', '');
  showStart(false);
  show('waiting', true);
  draw();
  goTo('waiting-title');
  const answer = keptAnswer();
  if (answer !== undefined) finish(now, answer);
}

/** The answer that the kept request under way got before. */
function keptAnswer(): string | undefined {
  const name = keptName();
  return name === undefined ? undefined : answerOf(name);
}

function sendRequest(now: Running): void {
  if (now.sent) return;
  now.sent = true;
  const { half, patterns, asked } = now.request;
  if (language() !== LANGUAGES[0]) {
    now.languageSet = tell('language-set', {}, '\n');
    void now.lines.send(wrapped(now.request, `lang ${language()}`, asked - 1));
  }
  void now.lines.send(wrapped(now.request, splitMessage(half, patterns), asked)).then(() => {
    now.taken = true;
    draw();
  });
}

function read(now: Running, wrap: NostrEvent): void {
  if (now !== running || now.messages.size >= MOST_MESSAGES) return;
  const message = opened(now.request, wrap);
  if (message === undefined || now.messages.has(message.id) || message.text === now.languageSet) return;
  now.messages.set(message.id, message);
  draw();
  const { result, job, work } = talkOf(now);
  if (result !== undefined) finish(now, result);
  else if (job !== undefined) now.mining?.stop();
  else if (work !== undefined && work.bits > (now.mining?.bits ?? 0)) workFor(now, work);
}

/** Does the proof of work that the bot asks for, and sends the request again with it. */
function workFor(now: Running, { bits }: WorkWanted): void {
  now.mining?.stop();
  const { half, patterns, asked, to } = now.request;
  const order = orderOf({ bot: to.bot, author: asker(now.request), bits });
  // The first number with enough work and the date of the request do not change. So the message is
  // the same if it is sent again on the same day.
  now.mining = mine(order, (number) => {
    const text = `${splitMessage(half, patterns)}\n${workLine(order, number)}`;
    void now.lines.send(wrapped(now.request, text, asked));
    if (now.mining !== undefined) now.mining.done = true;
    draw();
  });
  draw();
}

function finish(now: Running, result: string): void {
  const name = keptName();
  const tweak = tweakIn(result);
  try {
    const before = keptAnswer();
    if (before !== undefined && before !== tweak) throw new Problem('other-answer');
    const { key } = combine(now.request.half, parseTweak(result), now.request.patterns);
    now.found = true;
    if (name !== undefined && tweak !== undefined) keepAnswer(name, tweak);
    leave();
    show('waiting', false);
    showKey(key, now.request.patterns, name);
  } catch (error) {
    say('waiting-problem', textOf(error));
  }
}

/** Shows what a request begins with, or hides it while one is under way or its key is shown. */
export function showStart(shown: boolean): void {
  for (const id of ['lead', 'ask-section', 'work-tool', 'manual']) show(id, shown);
  if (!shown) show('kept-section', false);
}

/** Makes room for another request when a key is forgotten, and deletes the kept one behind it. */
export function startOver(request?: string): void {
  if (request !== undefined) forget(request);
  resetKeeping(false);
  running = undefined;
  showStart(true);
  clearPrefix();
}

/** Ends the connections of the request under way. */
function leave(): void {
  if (running === undefined) return;
  clearInterval(running.timer);
  running.mining?.stop();
  running.lines.close();
}

/**
 * Tells the bot that nobody waits for the request under way. Its own limits cannot: the next
 * request has another identity.
 */
export function cancelUnkept(): void {
  if (running === undefined || !running.sent || !losesRequest()) return;
  const { lines, request } = running;
  clearInterval(running.timer);
  running.mining?.stop();
  running = undefined;
  const timeout = setTimeout(() => lines.close(), CANCEL_TIMEOUT);
  void lines.send(wrapped(request, 'cancel', Math.floor(Date.now() / 1000))).then(() => {
    clearTimeout(timeout);
    lines.close();
  });
}

function step(id: string, state: 'done' | 'now' | 'later'): void {
  const item = element(id);
  item.dataset.state = state;
  for (const aloud of item.querySelectorAll('.aloud')) aloud.textContent = state === 'later' ? '' : tell(state === 'done' ? 'step-done' : 'step-now');
  if (state === 'now') item.setAttribute('aria-current', 'step');
  else item.removeAttribute('aria-current');
}

/** Shows how far the request is. Called every second and after every change. */
export function draw(): void {
  if (running === undefined || running.found) return;
  const now = running;
  const talk = talkOf(now);
  const isOver = isRefused(talk) || hasStopped(now);
  step('step-wait', talk.job !== undefined ? 'done' : 'now');
  step('step-search', talk.job !== undefined ? 'now' : 'later');
  step('step-found', 'later');
  show('steps', !isOver);
  say('state', () => stateOf(now, talk));
  drawWords(talk);
  show('stop', talk.job !== undefined && now.stopping === undefined);
  show('keep', !isOver);
  drawTime(now, talk);
}

/** Shows the bot's newest words. They are unfolded unless the page reads them as the acceptance. */
function drawWords(talk: Conversation): void {
  const text = talk.latest?.text ?? '';
  if (element('bot-words').textContent === text) return;
  say('bot-words', text);
  show('bot-says', text !== '');
  the('bot-says', HTMLDetailsElement).open = talk.latest?.id !== talk.acceptedBy;
}

function stateOf(now: Running, talk: Conversation): string {
  if (isRefused(talk)) return tell('refused');
  if (hasStopped(now)) return tell('stopped');
  if (now.connected === 0) return tell(Date.now() - now.began < 5000 ? 'connecting' : 'relays-gone');
  if (now.stopping !== undefined) return tell('stopping');
  if (talk.job !== undefined) return tell('searching', { job: talk.job });
  if (now.mining?.done === true) return tell('worked');
  if (now.mining !== undefined) return tell('working');
  if (!now.taken && now.sent) return tell('sending');
  return tell(Date.now() - now.began < PATIENCE ? 'waiting' : 'no-answer');
}

function drawTime(now: Running, talk: Conversation): void {
  const expected = talk.expected ?? expectedFor(now.request.patterns);
  const seconds = Date.now() / 1000 - (talk.accepted ?? Date.now() / 1000);
  const bar = the('progress', HTMLProgressElement);
  const mining = talk.job === undefined && now.mining?.done !== true ? now.mining : undefined;
  const isSearching = talk.job !== undefined && !hasStopped(now);
  bar.ariaLabel = tell(mining === undefined ? 'chance-key' : 'chance-work');
  bar.hidden = mining === undefined && (!isSearching || expected === undefined);
  if (mining !== undefined) {
    bar.value = chanceAfter(mining.tried, 2 ** mining.bits);
    return say('time', () => mining.progress());
  }
  if (!isSearching) return say('time', '');
  const elapsed = () => duration(Math.max(1, seconds));
  if (expected === undefined) return say('time', () => tell('so-far', { elapsed: elapsed() }));
  const time = timeOf(now.request.patterns);
  if (time !== undefined) {
    bar.ariaLabel = tell('part-over');
    bar.value = Math.min(1, seconds / time);
    return say('time', () => tell('so-far-of', { elapsed: elapsed(), time: duration(time) }));
  }
  bar.value = chanceAfter(seconds, expected);
  const id = seconds > 3 * expected + 10 ? 'so-far-late' : 'so-far-expected';
  say('time', () => tell(id, { elapsed: elapsed(), time: duration(expected) }));
}

function stop(): void {
  if (running === undefined) return;
  const { job } = talkOf(running);
  if (job === undefined) return;
  const now = Math.floor(Date.now() / 1000);
  running.stopping = running.messages.size;
  void running.lines.send(wrapped(running.request, `cancel ${job}`, now));
  draw();
}

function again(): void {
  if (losesRequest() && !confirm(tell('again-sure'))) return;
  cancelUnkept();
  leave();
  running = undefined;
  show('waiting', false);
  showStart(true);
  input('prefix').focus();
}

export function startAsking(link: BotLink): void {
  show('ask-section', true);
  startPrefixField();
  onSubmit('ask', () => attempt('prefix-error', ['prefix'], ask));
  onSubmit('keep', () => keepRequest(running?.request, 'browser'));
  onClick('keep-file', () => keepRequest(running?.request, 'file'));
  onClick('retry-bot', () => void find(link));
  onClick('stop', stop);
  onClick('again', again);
  addEventListener('online', () => {
    if (to === undefined) void find(link);
  });
  // Nobody can say whether the page that goes now comes back. A kept request may.
  addEventListener('pagehide', cancelUnkept);
  void find(link);
}
