// The bot's messages about one request, as far as a program can understand them. Their prose may
// change and come in several languages. So the page reads only a job number, a duration,
// `ntweak1…`, and the command `npubbot work`.

import { expectedIn } from './estimate';
import { workWanted, type WorkWanted } from './work';

export interface Message {
  readonly id: string;
  readonly text: string;
  /** Unix seconds. */
  readonly at: number;
}

export interface Conversation {
  /** The number of the job, once a message starts with it. */
  readonly job?: string;
  /** Expected seconds, if the bot said so. */
  readonly expected?: number;
  /** The message that named the job: its id, and its date in Unix seconds. */
  readonly acceptedBy?: string;
  readonly accepted?: number;
  /** The message with a tweak in it. */
  readonly result?: string;
  /** The proof of work that the newest message asks for. */
  readonly work?: WorkWanted;
  /** The newest message without a tweak. */
  readonly latest?: Message;
}

/** The most messages that are read about one request. Further ones are ignored. */
export const MOST_MESSAGES = 200;

/**
 * Reads a conversation from `messages`, given in the order of their arrival. That order decides
 * between messages of the same second.
 */
export function understand(messages: readonly Message[]): Conversation {
  const inOrder = [...messages].sort((one, other) => one.at - other.at);
  const results = inOrder.filter(({ text }) => tweakIn(text) !== undefined);
  const words = inOrder.filter(({ text }) => tweakIn(text) === undefined);
  const first = words.find((message) => jobIn(message.text) !== undefined);
  const job = jobIn((first ?? results[0])?.text ?? '');
  const expected = first && expectedIn(first.text);
  const latest = words.at(-1);
  const result = results.at(-1)?.text;
  const work = workWanted(latest?.text ?? '');
  return {
    ...(job !== undefined && { job }),
    ...(expected !== undefined && { expected }),
    ...(first !== undefined && { acceptedBy: first.id, accepted: first.at }),
    ...(result !== undefined && { result }),
    ...(work !== undefined && { work }),
    ...(latest !== undefined && { latest }),
  };
}

/** The text `ntweak1…` in a message, in lower case. */
export function tweakIn(text: string): string | undefined {
  return text.match(/\bntweak1[a-z0-9]+/i)?.[0].toLowerCase();
}

/** The number of a job at the start of a message: `Job #12: …`, `#12 …`, `job 12 …`. */
function jobIn(text: string): string | undefined {
  return (text.match(/^[^\d\n#]{0,40}#(\d{1,12})\b/) ?? text.match(/^\W*job (\d{1,12})\b/i))?.[1];
}
