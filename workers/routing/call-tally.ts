import type { CallClass } from '../../shared/work/queue/call-class.ts';

/** Counts the calls of one process that wait for a slot or run. */
export class CallTally {
  readonly #counts = new Map<string, Record<CallClass, number>>();

  /** @returns a function to be called when the call has ended */
  begin(model: string, callClass: CallClass): () => void {
    let counts = this.#counts.get(model);
    if (counts === undefined) {
      counts = { interactive: 0, job: 0, batch: 0 };
      this.#counts.set(model, counts);
    }
    const ofModel = counts;
    ofModel[callClass] += 1;
    return () => {
      ofModel[callClass] -= 1;
    };
  }

  of(model: string, callClass: CallClass): number {
    return this.#counts.get(model)?.[callClass] ?? 0;
  }
}
