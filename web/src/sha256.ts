// SHA-256 of one block with many numbers in it, for proof of work: some five times as fast as a library
// that hashes each text anew.

/** The first 32 bits of the fractional parts of roots of the first primes (FIPS 180-4). */
const [START, ROUNDS] = (() => {
  const primes: number[] = [];
  for (let each = 2; primes.length < 64; each++) if (primes.every((prime) => each % prime !== 0)) primes.push(each);
  const bits = (root: number) => Math.floor((root % 1) * 2 ** 32);
  return [Int32Array.from(primes.slice(0, 8), (prime) => bits(Math.sqrt(prime))), Int32Array.from(primes, (prime) => bits(Math.cbrt(prime)))];
})();

const turned = (word: number, by: number) => (word >>> by) | (word << (32 - by));

/** Words of a block's schedule, each with its round's constant. */
const SCHEDULE = 64;

/** The schedule of a block. */
function expand(block: DataView, into: Int32Array): void {
  for (let i = 0; i < 16; i++) into[i] = block.getInt32(4 * i);
  for (let i = 16; i < SCHEDULE; i++) {
    const early = into[i - 15]!;
    const late = into[i - 2]!;
    const first = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3);
    const second = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10);
    into[i] = into[i - 16]! + first + into[i - 7]! + second;
  }
  for (let i = 0; i < SCHEDULE; i++) into[i] = into[i]! + ROUNDS[i]!;
}

/** Takes a block into the state. It is written out, because an array a round takes six times as long. */
function compress(state: Int32Array, schedule: Int32Array): void {
  let a = state[0]!, b = state[1]!, c = state[2]!, d = state[3]!;
  let e = state[4]!, f = state[5]!, g = state[6]!, h = state[7]!;
  for (let i = 0; i < SCHEDULE; i++) {
    const one = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + schedule[i]!) | 0;
    const two = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + one) | 0;
    d = c;
    c = b;
    b = a;
    a = (one + two) | 0;
  }
  state[0] = state[0]! + a;
  state[1] = state[1]! + b;
  state[2] = state[2]! + c;
  state[3] = state[3]! + d;
  state[4] = state[4]! + e;
  state[5] = state[5]! + f;
  state[6] = state[6]! + g;
  state[7] = state[7]! + h;
}

/** The hashes of 32 bytes with a number of 8 bytes behind them: one block. */
export class NumberHash {
  private readonly schedule = new Int32Array(SCHEDULE);
  private readonly state = new Int32Array(8);
  private readonly block = new DataView(new ArrayBuffer(64));

  constructor(before: Uint8Array) {
    new Uint8Array(this.block.buffer).set(before.subarray(0, 32));
    this.block.setUint8(40, 0x80);
    this.block.setUint32(60, 8 * 40);
  }

  /** The words of a number's hash. They are overwritten by the next call. */
  of(number: number): Int32Array {
    this.block.setUint32(32, Math.floor(number / 2 ** 32));
    this.block.setUint32(36, number % 2 ** 32);
    expand(this.block, this.schedule);
    this.state.set(START);
    compress(this.state, this.schedule);
    return this.state;
  }
}
