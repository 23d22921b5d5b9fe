// A worker: tries every `step`th number, and says how far it is and which one has the work.

import { WorkFinder, type WorkOrder } from './work';

/** Numbers tried between two reports. There are some ten reports a second. */
const AT_ONCE = 1 << 13;

export interface WorkShare {
  readonly order: WorkOrder;
  readonly first: number;
  readonly step: number;
}

export interface WorkNews {
  /** The worker has tried all its numbers below this one. */
  readonly next: number;
  readonly found?: number;
}

const tell = (news: WorkNews): void => postMessage(news);

addEventListener('message', ({ data: { order, first, step } }: MessageEvent<WorkShare>) => {
  const finder = new WorkFinder(order);
  for (let next = first; ; next += step * AT_ONCE) {
    const found = finder.find(next, step, AT_ONCE);
    if (found !== undefined) return tell({ next: found + step, found });
    tell({ next: next + step * AT_ONCE });
  }
});
