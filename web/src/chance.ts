// The exact chance that a random key has one of several shapes, as `miner/src/pattern/chance.rs` of
// the bot computes it. The text is read from left to right. After each character, a state holds all
// that is known about the shapes. Shapes that overlap are counted once.

import { ANY, chanceOfStarts, kindsOf, NPUB_CHARACTERS, partOf, possibleAt, type Characters, type Shape } from './shapes';

/**
 * Steps after which the computation is given up. They take some tenths of a second. The bot gives
 * up on a message much sooner.
 */
const MOST_STEPS = 2 ** 20;

/** The progress of the match of one shape. */
interface State {
  readonly shape: number;
  /** 0 in the start; 1 and on in the parts of the middle; then in the end. */
  readonly stage: number;
  /** Bit `n` is set if the last `n + 1` characters fit the first `n + 1` places of the part. */
  readonly progress: number;
}

type Outcome = State | 'failed' | 'met';

/**
 * The chance, 0 to 1, that a random key has one of these shapes. `undefined` if it takes too long
 * to compute.
 */
export function chanceOf(shapes: readonly Shape[]): number | undefined {
  if (shapes.every(isStart)) return chanceOfStarts(shapes.map((shape) => shape.start));
  const steps = new Steps(shapes);
  const first: State[] = [];
  for (const at of shapes.keys()) {
    const outcome = steps.entered({ shape: at, stage: 0, progress: 0 }, 0);
    if (outcome === 'met') return 1;
    if (outcome !== 'failed' && !steps.isIdle(outcome)) first.push(outcome);
  }
  let layer = new Map([['', { known: first, chance: 1 }]]);
  let met = 0;
  let left = MOST_STEPS;
  for (let at = 0; at < NPUB_CHARACTERS && layer.size > 0; at += 1) {
    const possible = possibleAt(at);
    const kinds = kindsOf(possible, shapes.flatMap((shape) => setsAt(shape, at)));
    const next: typeof layer = new Map();
    for (const { known, chance } of layer.values()) {
      left -= kinds.length * (known.length + 1);
      if (left < 0) return undefined;
      for (const kind of kinds) {
        const share = chance * partOf(kind, possible);
        const after = steps.advanced(known, at, 31 - Math.clz32(kind & -kind));
        if (after === undefined) {
          met += share;
        } else {
          let name = '';
          for (const { shape, stage, progress } of after) name += `${shape},${stage},${progress} `;
          const same = next.get(name);
          if (same === undefined) next.set(name, { known: after, chance: share });
          else same.chance += share;
        }
      }
    }
    layer = next;
  }
  return met;
}

const isStart = ({ middle, end }: Shape) => middle.length === 0 && end.length === 0;

const endFrom = (shape: Shape) => NPUB_CHARACTERS - shape.end.length;

/** The sets of a shape that a character at this place may be compared with. */
function setsAt(shape: Shape, at: number): Characters[] {
  const middle = at < shape.start.length ? [] : shape.middle.flat();
  return [...middle, shape.start[at] ?? ANY, shape.end[at - endFrom(shape)] ?? ANY];
}

/**
 * Splits a progress into two halves. A progress has up to 46 bits, one for each character of a
 * part, and bit operations have 32.
 */
const HALF = 2 ** 26;

/** The bits that both of two progresses have. */
function both(one: number, other: number): number {
  if (one < HALF && other < HALF) return one & other;
  return (Math.floor(one / HALF) & Math.floor(other / HALF)) * HALF + ((one % HALF) & (other % HALF));
}

class Steps {
  /** For each part of each shape and each character, the places of the part that it fits. */
  private readonly fits: readonly (readonly (readonly number[])[])[];
  /** Shapes without a start, which wait for their first part all the time. */
  private readonly waits: readonly boolean[];
  /** For each character, the shapes of `waits` whose first part it may begin, as states. */
  private readonly begins: readonly (readonly State[])[];

  constructor(private readonly shapes: readonly Shape[]) {
    const places = (part: readonly Characters[], value: number) =>
      part.reduce((all, set, place) => (((set >>> value) & 1) === 1 ? all + 2 ** place : all), 0);
    const values = Array.from({ length: 32 }, (_, value) => value);
    this.fits = shapes.map(({ middle }) => middle.map((part) => values.map((value) => places(part, value))));
    this.waits = shapes.map(({ start, middle }) => start.length === 0 && middle.length > 0);
    const begin = (at: number, value: number) => this.waits[at] === true && (this.fits[at]?.[0]?.[value] ?? 0) % 2 === 1;
    const idle = [...shapes.keys()].map((shape) => ({ shape, stage: 1, progress: 0 }));
    this.begins = values.map((value) => idle.filter(({ shape }) => begin(shape, value)));
  }

  /** Whether no part of the state's shape has begun. Such a state is not kept. */
  isIdle({ shape, stage, progress }: State): boolean {
    return stage === 1 && progress === 0 && this.waits[shape] === true;
  }

  /** The states after one more character; `undefined` if some shape is met. */
  advanced(known: readonly State[], at: number, value: number): State[] | undefined {
    const begun = (this.begins[value] ?? []).filter(({ shape }) => !known.some((state) => state.shape === shape));
    const after: State[] = [];
    for (const state of begun.length === 0 ? known : [...known, ...begun]) {
      const outcome = this.step(state, at, value);
      if (outcome === 'met') return undefined;
      if (outcome !== 'failed' && !this.isIdle(outcome)) after.push(outcome);
    }
    return after.length > 1 ? after.sort((one, other) => one.shape - other.shape) : after;
  }

  private step(state: State, at: number, value: number): Outcome {
    const shape = this.shapes[state.shape];
    if (shape === undefined) return 'failed';
    const has = (set: Characters | undefined) => set !== undefined && ((set >>> value) & 1) === 1;
    if (state.stage === 0) return has(shape.start[at]) ? this.entered(state, at + 1) : 'failed';
    const part = shape.middle[state.stage - 1];
    if (part === undefined) {
      const place = at - endFrom(shape);
      if (place < 0) return state;
      if (!has(shape.end[place])) return 'failed';
      return place + 1 === shape.end.length ? 'met' : state;
    }
    if (at >= Math.min(shape.within, endFrom(shape))) return 'failed';
    const fitting = this.fits[state.shape]?.[state.stage - 1]?.[value] ?? 0;
    const progress = both(2 * state.progress + 1, fitting);
    if (progress >= 2 ** (part.length - 1)) {
      return this.entered({ shape: state.shape, stage: state.stage + 1, progress: 0 }, at + 1);
    }
    return { shape: state.shape, stage: state.stage, progress };
  }

  /** The state on entering a stage, or after a character of the start. Empty parts are skipped. */
  entered(state: State, at: number): Outcome {
    const shape = this.shapes[state.shape];
    if (shape === undefined) return 'failed';
    if (state.stage === 0 && at < shape.start.length) return state;
    const stage = Math.max(state.stage, 1);
    return stage > shape.middle.length && shape.end.length === 0 ? 'met' : { ...state, stage };
  }
}
