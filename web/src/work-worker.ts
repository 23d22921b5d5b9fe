// The worker: searches for the first number with the work, and reports its progress.

import { findWork } from './work';

/** Numbers tried between two reports of progress. There are some ten reports a second. */
const AT_ONCE = 1 << 16;

export interface WorkOrder {
  readonly target: Uint8Array;
  readonly bits: number;
}

export interface WorkNews {
  readonly tried: number;
  readonly found?: number;
}

const tell = (news: WorkNews): void => postMessage(news);

addEventListener('message', ({ data }: MessageEvent<WorkOrder>) => {
  for (let tried = 0; ; tried += AT_ONCE) {
    const found = findWork(data.target, data.bits, tried, AT_ONCE);
    if (found !== undefined) return tell({ tried: found, found });
    tell({ tried: tried + AT_ONCE });
  }
});
