import { readThreadMs } from '../support/thread-clock.ts';

/** Work whose input can have any size. */
export interface Work<T> {
  /** Makes an input whose length is in proportion to `size`. Not part of the measurement. */
  readonly make: (size: number) => T;
  readonly run: (input: T) => unknown;
  readonly maxSize: number;
}

/** Each size is eight times the one before it, with which it is compared. */
const shares = [1 / 64, 1 / 8, 1];
const factor = 8;

/**
 * How much longer an input may take than one an eighth as long. Linear work takes 8 times as long, `n log n` about 10
 * times, quadratic work 64 times. The caches of a processor and the garbage collector may double a time.
 */
const maxRatio = 24;
/**
 * What a single measurement must exceed to be repeated. Lower, because the first runs of a function are slow. For inputs of
 * half the size, a little less is enough: what grows fast does so over a range, while memory may become slow at one
 * size.
 */
const suspiciousRatio = 14;
const halfRatio = 12;
/**
 * How much longer an input must take than one half, and one a quarter, as long. Work that grows fast enough for the other
 * ratios takes over 3 and 9 times as long. Linear work that became slower at some size takes 2 and 4 times as long: objects
 * with over a thousand fields, or of over a thousand shapes, are stored in another way.
 */
const minGrowth = { half: 2.3, quarter: 6.5 };
/** A shorter time says nothing, and harms nobody. */
const minMs = 4;
/** The clock of a thread advances in steps of at most this length. */
const stepMs = 4;
/** The shortest of several runs was hardly interrupted. */
const runs = 5;
/** How often a result must repeat itself, without an exception, until it counts. */
const confirmations = 3;

/**
 * Returns a description of the growth if the time of the work grows faster than its input; null otherwise.
 * @param attempts how often growth that an exception has hidden is looked for; a busy machine causes exceptions
 */
export async function findFastGrowth<T>(work: Work<T>, attempts = 1): Promise<string | null> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const growth = await lookForGrowth(work);
    if (growth !== null) return growth;
  }
  return null;
}

/** Measures in the order of the sizes, so that quadratic work is found before it takes minutes. */
async function lookForGrowth<T>(work: Work<T>): Promise<string | null> {
  const known: Time[] = [];
  for (const [i, share] of shares.entries()) {
    // All but the largest are small inputs of a later comparison. One that was interrupted would hide growth.
    const repeats = share < 1 ? 2 : 1;
    known.push(await measureBest(work.run, work.make(Math.ceil(work.maxSize * share)), 1, repeats));
    const small = known[i - 1];
    const largeMs = upperMs(known[i]!);
    if (small === undefined || largeMs < minMs || largeMs < suspiciousRatio * lowerMs(small)) continue;
    // The small input mostly took too little time for the thread's clock.
    if (largeMs < suspiciousRatio * (await measureSmall(work, share))) continue;
    const growth = await confirm(work, share);
    if (growth !== null) return growth;
  }
  return null;
}

/** A time by both clocks (ms). The thread's clock does not advance while others have the processor. */
interface Time {
  readonly wallMs: number;
  readonly threadMs: number;
}

const upperMs = ({ wallMs, threadMs }: Time): number => Math.min(wallMs, threadMs + stepMs);
const lowerMs = ({ wallMs, threadMs }: Time): number => Math.min(wallMs, Math.max(threadMs, 0.01));

/** How long an eighth of the input takes (ms): so many runs of it that they have the same total size. */
async function measureSmall<T>({ make, run, maxSize }: Work<T>, share: number): Promise<number> {
  const small = make(Math.ceil(Math.ceil(maxSize * share) / factor));
  return toSmallMs(await measureBest(run, small, factor, 2));
}

/** The time of one of the runs of a small input. */
const toSmallMs = ({ wallMs, threadMs }: Time): number =>
  (threadMs > 5 * stepMs ? threadMs : wallMs) / factor;

/**
 * Returns a description if the ratio of the times, at this size and less clearly at half of it, exceeds what linear
 * work needs, several times in a row.
 */
async function confirm<T>({ make, run, maxSize }: Work<T>, share: number): Promise<string | null> {
  const size = Math.ceil(maxSize * share);
  const inputs = makeInputs(make, size);
  const half = makeInputs(make, Math.ceil(size / 2));
  const quarter = make(Math.ceil(size / 4));
  let text = '';
  for (let count = 0; count < confirmations; count += 1) {
    const { largeMs, smallMs } = await compare(run, inputs);
    if (largeMs < minMs || largeMs < maxRatio * smallMs) return null;
    const atHalf = await compare(run, half);
    if (atHalf.largeMs < halfRatio * atHalf.smallMs) return null;
    if (largeMs < minGrowth.half * atHalf.largeMs) return null;
    if (largeMs < minGrowth.quarter * upperMs(await measureBest(run, quarter, 1))) return null;
    text = `${largeMs.toFixed(2)} ms for a size of ${size}, ${smallMs.toFixed(2)} ms for an eighth of it`;
  }
  return text;
}

const makeInputs = <T>(make: Work<T>['make'], size: number) => ({
  large: make(size),
  small: make(Math.ceil(size / factor)),
});

/**
 * Compares one run with as many runs of the small input as have the same total size, so that a busy machine affects
 * both alike. Errs on the low side.
 */
async function compare<T>(run: Work<T>['run'], { large, small }: { readonly large: T; readonly small: T }) {
  const smallMs = toSmallMs(await measureBest(run, small, factor));
  return { smallMs, largeMs: upperMs(await measureBest(run, large, 1)) };
}

async function measureBest<T>(
  run: (input: T) => unknown,
  input: T,
  repeats: number,
  count = runs,
): Promise<Time> {
  const times: Time[] = [];
  for (let i = 0; i < count; i += 1) times.push(await measure(run, input, repeats));
  return {
    wallMs: Math.min(...times.map(({ wallMs }) => wallMs)),
    threadMs: Math.min(...times.map(({ threadMs }) => threadMs)),
  };
}

async function measure<T>(run: (input: T) => unknown, input: T, repeats = 1): Promise<Time> {
  const thread = readThreadMs();
  const wall = performance.now();
  for (let count = 0; count < repeats; count += 1) {
    try {
      await run(input);
    } catch {
      // Most hostile inputs are refused. Only the time until then counts.
    }
  }
  const wallMs = performance.now() - wall;
  return { wallMs, threadMs: readThreadMs() - thread };
}
