// Proof of work in a web worker, so that the page stays responsive.

import type { WorkNews, WorkOrder } from './work-worker';

/** The bundled text of `work-worker.ts`; `build.mjs` fills it in. */
declare const WORKER: string;

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

export interface Mining {
  readonly bits: number;
  /** Numbers tried so far. */
  tried: number;
  /** Whether a number was found. */
  done: boolean;
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

/** Searches for a number with the bits of work that `order` asks for. */
export function mine(order: WorkOrder, onFound: (number: number) => void): Mining {
  const worker = new Worker(workerAddress());
  const mining: Mining = { bits: order.bits, tried: 0, done: false, stop: () => worker.terminate() };
  worker.addEventListener('message', ({ data }: MessageEvent<WorkNews>) => {
    mining.tried = data.tried;
    if (data.found === undefined) return;
    worker.terminate();
    onFound(data.found);
  });
  worker.postMessage(order);
  return mining;
}
