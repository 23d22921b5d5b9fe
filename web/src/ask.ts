// Asking the bot: from the prefix to the key, through its relays, as a one-time identity.

import type { NostrEvent } from 'nostr-tools';
import { understand, MOST_MESSAGES, type Conversation, type Message } from './answers';
import { findBot, npubOfBot } from './bot';
import { attempt, element, goTo, input, onClick, onSubmit, say, show, the } from './dom';
import { chanceAfter, duration } from './estimate';
import { forget } from './keep';
import { isKept, keepRequest, keptName, resetKeeping } from './keeping';
import { pointOf } from './key';
import { forgetKey, mayDropKey, showKey } from './key-card';
import type { BotLink } from './link';
import { mine, type Mining } from './mining';
import { nameOf, parsePatterns, timeOf } from './patterns';
import { allowOnly } from './policy';
import { clearPrefix, expectedFor, setRates, startPrefixField } from './prefix-field';
import { Lines } from './relays';
import { asker, authenticates, inboxList, newRequest, opened, splitMessage, wrapped, type AskRequest } from './request';
import { combine, parseTweak } from './tweak';
import { workTarget, workText } from './work';

/** If the bot says nothing for this time, the page says that it may be asleep. Milliseconds. */
const PATIENCE = 20_000;

/** A request under way. */
interface Running {
  readonly request: AskRequest;
  readonly lines: Lines;
  readonly messages: Map<string, Message>;
  readonly timer: ReturnType<typeof setInterval>;
  readonly began: number;
  connected: number;
  sent: boolean;
  found: boolean;
  /** The proof of work under way or done, if the bot asked for it. */
  mining?: Mining;
  /** Number of messages that were received before the bot was told to stop. */
  stopping?: number;
}

let to: BotLink | undefined;
let running: Running | undefined;

/** Whether closing the tab now would lose a half. */
export function losesRequest(): boolean {
  return running !== undefined && !running.found && !hasStopped(running) && !isKept();
}

/** Whether the bot has answered since it was told to stop. */
function hasStopped(now: Running): boolean {
  return now.stopping !== undefined && now.messages.size > now.stopping;
}

/** Looks the bot up: its name, its relays, its speed. */
async function find(link: BotLink): Promise<void> {
  show('retry-bot', false);
  say('bot-state', 'Looking for the bot…');
  const bot = await findBot(link);
  if (!bot.reached) {
    say('bot-state', 'None of the bot’s relays can be reached now. Are you online?');
    show('retry-bot', true);
    return;
  }
  to = bot.link;
  setRates(bot.rates);
  const relays = to.relays.map((relay) => new URL(relay).host).join(', ');
  say('bot-state', `You ask ${bot.name}, ${npubOfBot(link).slice(0, 14)}…, through ${relays}.`);
}

function ask(): void {
  const patterns = parsePatterns(input('prefix').value);
  if (to === undefined) throw new Error('The bot is not found yet. Wait a moment, or try again.');
  if (!mayDropKey()) return;
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
  // The policy can only be narrowed later. So it also allows the relays of the bot's list, for a
  // next request.
  const relays = [...new Set([...request.to.relays, ...(to?.relays ?? [])])];
  allowOnly(relays);
  const hosts = relays.map((relay) => new URL(relay).host).join(', ');
  say('connects', `It connects to ${hosts}, and to nothing else: its content security policy allows no more.`);
  const now: Running = {
    request,
    messages: new Map(),
    timer: setInterval(draw, 1000),
    began: Date.now(),
    connected: 0,
    sent: false,
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
  say('waiting-title', `Searching for ${request.patterns.map(nameOf).join(' or ')}`);
  showStart(false);
  show('waiting', true);
  draw();
  goTo('waiting-title');
}

function sendRequest(now: Running): void {
  if (now.sent) return;
  now.sent = true;
  const { half, patterns, asked } = now.request;
  void now.lines.send(wrapped(now.request, splitMessage(half, patterns), asked)).then(() => {
    step('step-sent', 'done');
    draw();
  });
}

function read(now: Running, wrap: NostrEvent): void {
  if (now !== running || now.messages.size >= MOST_MESSAGES) return;
  const message = opened(now.request, wrap);
  if (message === undefined || now.messages.has(message.id)) return;
  now.messages.set(message.id, message);
  step('step-sent', 'done');
  draw();
  const { result, job, work } = understand([...now.messages.values()]);
  if (result !== undefined) finish(now, result);
  else if (job !== undefined) now.mining?.stop();
  else if (work !== undefined && work > (now.mining?.bits ?? 0)) workFor(now, work);
}

/** Does the proof of work that the bot asks for, and sends the request again with it. */
function workFor(now: Running, bits: number): void {
  now.mining?.stop();
  const { half, patterns, asked, to } = now.request;
  now.mining = mine({ target: workTarget(to.bot, pointOf(half)), bits }, (number) => {
    // The first number with enough work and the date of the request do not change. So the message
    // is the same if it is sent again.
    void now.lines.send(wrapped(now.request, splitMessage(half, patterns, workText(number)), asked));
    if (now.mining !== undefined) now.mining.done = true;
    draw();
  });
  draw();
}

function finish(now: Running, result: string): void {
  let made;
  try {
    made = combine(now.request.half, parseTweak(result), now.request.patterns);
  } catch (error) {
    say('waiting-problem', error instanceof Error ? error.message : 'The bot’s answer makes no key.');
    return;
  }
  now.found = true;
  step('step-found', 'done');
  leave();
  show('waiting', false);
  showKey(made.key, keptName());
}

/** Shows what a request begins with, or hides it while one is under way or its key is shown. */
export function showStart(shown: boolean): void {
  for (const id of ['lead', 'ask-section', 'manual']) show(id, shown);
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

function step(id: string, state: 'done' | 'now' | 'later'): void {
  const item = element(id);
  item.dataset.state = state;
  for (const aloud of item.querySelectorAll('.aloud')) aloud.textContent = { done: ': done', now: ': now', later: '' }[state];
  if (state === 'now') item.setAttribute('aria-current', 'step');
  else item.removeAttribute('aria-current');
}

/** Shows how far the request is. Called every second and after every change. */
function draw(): void {
  if (running === undefined || running.found) return;
  const talk = understand([...running.messages.values()]);
  const sent = running.messages.size > 0 || element('step-sent').dataset.state === 'done';
  step('step-sent', sent ? 'done' : 'now');
  step('step-accepted', talk.job !== undefined ? 'done' : sent ? 'now' : 'later');
  step('step-found', talk.job !== undefined && !hasStopped(running) ? 'now' : 'later');
  say('state', stateOf(running, talk, sent));
  drawWords(talk);
  show('stop', talk.job !== undefined && running.stopping === undefined);
  show('keep', !hasStopped(running));
  drawTime(running, talk);
}

/** Shows the bot's newest words. They are unfolded unless the page reads them as the acceptance. */
function drawWords(talk: Conversation): void {
  const text = talk.latest?.text ?? '';
  if (element('bot-words').textContent === text) return;
  say('bot-words', text);
  show('bot-says', text !== '');
  the('bot-says', HTMLDetailsElement).open = talk.latest?.id !== talk.acceptedBy;
}

function stateOf(now: Running, talk: Conversation, sent: boolean): string {
  if (now.connected === 0) {
    return Date.now() - now.began < 5000
      ? 'Connecting…'
      : 'No relay can be reached now. The page goes on trying.';
  }
  if (hasStopped(now)) return 'Stopped. You can ask for something else.';
  if (now.stopping !== undefined) return 'The bot is told to stop…';
  if (talk.job !== undefined) return `Job #${talk.job}: the bot is searching.`;
  if (now.mining?.done === true) return 'The work is done. Waiting for the bot’s answer…';
  if (now.mining !== undefined) return 'Many ask for keys now, so the bot asks for some work first. Your browser does it…';
  if (talk.latest !== undefined) return 'The bot has answered.';
  if (!sent) return 'Sending your request…';
  if (Date.now() - now.began < PATIENCE) return 'Waiting for the bot’s answer…';
  return 'The bot has not answered yet. It may be busy or asleep; your request waits for it at the relays.';
}

function drawTime(now: Running, talk: Conversation): void {
  const expected = talk.expected ?? expectedFor(now.request.patterns);
  const elapsed = Date.now() / 1000 - (talk.accepted ?? Date.now() / 1000);
  const bar = the('progress', HTMLProgressElement);
  const mining = talk.job === undefined && now.mining?.done !== true ? now.mining : undefined;
  bar.ariaLabel = mining === undefined ? 'Chance that the key is found by now' : 'Chance that the work is done by now';
  bar.hidden = mining === undefined && (talk.job === undefined || expected === undefined || hasStopped(now));
  if (mining !== undefined) {
    bar.value = chanceAfter(mining.tried, 2 ** mining.bits);
    return say('time', `${Math.round(100 * bar.value)} of 100 are done by now.`);
  }
  if (talk.job === undefined || hasStopped(now)) return say('time', '');
  const soFar = `${duration(Math.max(1, elapsed))} so far`;
  if (expected === undefined) return say('time', `${soFar}.`);
  const time = timeOf(now.request.patterns);
  if (time !== undefined) {
    bar.ariaLabel = 'Part of the time that is over';
    bar.value = Math.min(1, elapsed / time);
    return say('time', `${soFar} of ${duration(time)}.`);
  }
  bar.value = chanceAfter(elapsed, expected);
  const mean = expected < 1 ? 'less than a second' : `about ${duration(expected)}`;
  const late = elapsed > 3 * expected + 10 ? ' Bad luck so far; it can come at any moment.' : '';
  say('time', `${soFar}; ${mean} expected.${late}`);
}

function stop(): void {
  if (running === undefined) return;
  const { job } = understand([...running.messages.values()]);
  if (job === undefined) return;
  const now = Math.floor(Date.now() / 1000);
  running.stopping = running.messages.size;
  void running.lines.send(wrapped(running.request, `cancel ${job}`, now));
  draw();
}

function again(): void {
  if (losesRequest() && !confirm('You have not kept this request. Its answer would be lost. Go on?')) return;
  leave();
  running = undefined;
  for (const id of ['step-sent', 'step-accepted', 'step-found']) step(id, 'later');
  say('waiting-problem', '');
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
  void find(link);
}
