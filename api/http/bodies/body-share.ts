import type { BudgetShare } from '../../../shared/fairness/fair-budget.ts';
import type { Services } from '../../services.ts';
import type { ApiContext } from '../request/context.ts';
import { requesterOf } from '../request/requester.ts';
import { noMemory } from './body-errors.ts';

/** The memory that a request's body takes from the process's budget for bodies. */
export class BodyShare {
  readonly #requestMemory: Services['requestMemory'];
  readonly #context: ApiContext;
  #share: BudgetShare | null = null;

  constructor({ requestMemory }: Services, context: ApiContext) {
    this.#requestMemory = requestMemory;
    this.#context = context;
  }

  /** Null until something is held. */
  get held(): BudgetShare | null {
    return this.#share;
  }

  /** @throws AppError if the requester cannot have that much memory; the signal's reason */
  hold(bytes: number): void {
    // If the client has disconnected or has received its response, the rest of the body is not needed.
    this.#context.state.signal.throwIfAborted();
    if (this.#share?.tryGrow(bytes) === true) return;
    this.#share ??= this.#requestMemory.tryAcquire(requesterOf(this.#context), bytes);
    if (this.#share === null || this.#share.amount < bytes) throw noMemory();
  }

  /**
   * Holds the part of a small body that has arrived, unless that is all of it. Most small bodies arrive complete and
   * occupy memory only briefly.
   */
  holdIncomplete(bytes: number): void {
    const { req, request } = this.#context;
    if (!req.complete && bytes !== request.length) this.hold(bytes);
  }

  release(): void {
    this.#share?.release();
    this.#share = null;
  }
}
