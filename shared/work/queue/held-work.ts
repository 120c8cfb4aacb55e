import { callClasses, type CallClass } from './call-class.ts';

/** Requests, durable jobs, or lines of batches, of one model and class. */
export interface HeldCounts {
  readonly running: number;
  /** Those that wait for a call slot of their vendor. */
  readonly waiting: number;
  /** How long the first of those has waited. */
  readonly oldestMs: number;
}

/** What a worker has taken of one queue, by model and class. */
export type HeldWork = ReadonlyMap<string, Readonly<Partial<Record<CallClass, HeldCounts>>>>;

type Encoded = Record<string, (readonly [running: number, waiting: number, oldestMs: number] | 0)[]>;

/** As JSON, in the order of the classes. */
export function encodeHeldWork(held: HeldWork): Encoded {
  return Object.fromEntries(
    Array.from(held, ([model, byClass]) => [
      model,
      callClasses.map((callClass) => {
        const counts = byClass[callClass];
        return counts === undefined
          ? 0
          : ([counts.running, counts.waiting, Math.round(counts.oldestMs)] as const);
      }),
    ]),
  );
}

export function decodeHeldWork(encoded: Encoded): HeldWork {
  return new Map(
    Object.entries(encoded).map(([model, classes]) => {
      const byClass: Partial<Record<CallClass, HeldCounts>> = {};
      for (const [i, callClass] of callClasses.entries()) {
        const counts = classes[i];
        if (counts === undefined || counts === 0) continue;
        const [running, waiting, oldestMs] = counts;
        byClass[callClass] = { running, waiting, oldestMs };
      }
      return [model, byClass] as const;
    }),
  );
}
