// The bot's messages about one request, as far as a program can understand them. Their prose may
// change and come in several languages. So the page reads only a job number, a duration,
// `ntweak1…`, and the `--work` of a command line.

import { expectedIn } from './estimate';
import { workWanted } from './work';

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
  /** Bits of proof of work that the newest message asks for. */
  readonly work?: number;
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
  const results = inOrder.filter((message) => hasTweak(message.text));
  const words = inOrder.filter((message) => !hasTweak(message.text));
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

function hasTweak(text: string): boolean {
  return /\bntweak1[a-z0-9]+/i.test(text);
}

/** The number of a job at the start of a message: `Job #12: …`, `#12 …`, `job 12 …`. */
function jobIn(text: string): string | undefined {
  return (text.match(/^[^\d\n#]{0,40}#(\d{1,12})\b/) ?? text.match(/^\W*job (\d{1,12})\b/i))?.[1];
}
