// Proof of work in web workers, so that the page stays responsive.

import { chanceAfter, duration } from './estimate';
import { tell } from './texts';
import type { WorkOrder } from './work';
import type { WorkNews, WorkShare } from './work-worker';

/** The bundled text of `work-worker.ts`; `build.mjs` fills it in. */
declare const WORKER: string;

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

/** The most workers at a time. */
const MOST_WORKERS = 8;

export interface Mining {
  readonly bits: number;
  /** Numbers tried so far. */
  tried: number;
  /** Whether a number was found. */
  done: boolean;
  /** How far it is, in words, with the time that it takes. */
  progress(): string;
  stop(): void;
}

let address: string | undefined;

/** The worker's script as an address. The page's policy allows workers from `blob:` only. */
function workerAddress(): string {
  if (address === undefined) {
    const url = URL.createObjectURL(new Blob([WORKER], { type: 'text/javascript' }));
    const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
    address = trustedTypes?.createPolicy('npubbot-worker', { createScriptURL: () => url }).createScriptURL(url) ?? url;
  }
  return address;
}

/** Searches for the first number with the work of an order, on all processors but one. */
export function mine(order: WorkOrder, onFound: (number: number) => void): Mining {
  const step = Math.min(MOST_WORKERS, Math.max(1, (navigator.hardwareConcurrency || 2) - 1));
  const workers = Array.from({ length: step }, () => new Worker(workerAddress()));
  const next = workers.map((_, first) => first);
  const began = Date.now();
  let least = Infinity;
  const mining: Mining = {
    bits: order.bits,
    tried: 0,
    done: false,
    progress: () => {
      const percent = Math.round(100 * chanceAfter(mining.tried, 2 ** order.bits));
      if (mining.tried === 0) return tell('work-percent-only', { percent });
      // Numbers that were tried in vain make none of the others likelier.
      const left = ((Date.now() - began) / 1000 / mining.tried) * 2 ** order.bits;
      return tell('work-percent', { percent, span: duration(left) });
    },
    stop: () => workers.forEach((worker) => worker.terminate()),
  };
  workers.forEach((worker, first) => {
    worker.addEventListener('message', ({ data }: MessageEvent<WorkNews>) => {
      next[first] = data.next;
      least = Math.min(least, data.found ?? Infinity);
      mining.tried = next.reduce((sum, one) => sum + one, 0) / step;
      // Another worker may find a smaller number.
      if (mining.done || !next.every((one) => one > least)) return;
      mining.stop();
      mining.done = true;
      onFound(least);
    });
    worker.postMessage({ order, first, step } satisfies WorkShare);
  });
  return mining;
}
