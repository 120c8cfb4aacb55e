// decision 0086
import type { QueueEntry } from '../../shared/fairness/fair-queue.ts';
import { callClasses, type CallClass } from '../../shared/work/queue/call-class.ts';
import { fullCall } from './call-share.ts';
import { WaitingInputs, type CallPlan, type SharedCallLimits, type WaitingInput } from './waiting-inputs.ts';

export interface TieredInput extends WaitingInput {
  readonly callClass: CallClass;
}

/**
 * The waiting inputs of a model, by class. A call is made for the inputs of one class, and may have inputs of others:
 *
 * - An interactive call has only inputs that callers wait for, so lines of batch files never make it larger.
 * - A call for durable jobs is as large as without batch lines, which then fill it up to the size of their own calls.
 * - A call for batch lines is as large as its plan says. It begins with the inputs that callers wait for, or with those
 *   of jobs if there are none: the start of a job is recorded before its call, and callers do not wait for that.
 */
export class TieredInputs<T extends TieredInput> {
  readonly #tiers: Readonly<Record<CallClass, WaitingInputs<T>>>;

  /** @param cohortOf as for `WaitingInputs` */
  constructor(cohortOf: (accountId: string) => number | null = () => null) {
    const create = (): WaitingInputs<T> => new WaitingInputs(cohortOf);
    this.#tiers = { interactive: create(), job: create(), batch: create() };
  }

  get size(): number {
    return callClasses.reduce((sum, callClass) => sum + this.#tiers[callClass].size, 0);
  }

  of(callClass: CallClass): WaitingInputs<T> {
    return this.#tiers[callClass];
  }

  add(input: T): QueueEntry<T> {
    return this.#tiers[input.callClass].add(input);
  }

  /** Removes an input that nobody waits for any more. */
  remove(entry: QueueEntry<T>): void {
    this.#tiers[entry.item.callClass].remove(entry);
  }

  /**
   * Takes the inputs for one call of this class.
   * @param accountToServe the account that the call is made for
   * @param plan how many inputs of this class it takes
   * @param limits of the vendor
   * @param batchLimits of calls for batch lines
   */
  take(
    callClass: CallClass,
    accountToServe: string,
    plan: CallPlan,
    limits: SharedCallLimits,
    batchLimits: SharedCallLimits,
  ): T[] {
    const { interactive, job, batch } = this.#tiers;
    const call = this.#tiers[callClass].start(accountToServe);
    if (call === null) return [];
    const full = fullCall(limits);
    if (callClass === 'batch') {
      interactive.fill(call, full);
      if (call.items.length === 0) job.fill(call, full);
    }
    this.#tiers[callClass].fill(call, plan);
    if (callClass === 'job') batch.fill(call, fullCall(batchLimits));
    return call.items;
  }
}
