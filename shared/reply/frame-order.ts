import type { Frame } from './frame.ts';

/**
 * Follows the frames of one request: those of an earlier attempt are stale, as is one that was sent again and came both
 * times; a gap in those of the latest attempt means that some were lost.
 */
export class FrameOrder {
  attempt: number;
  #received = 0;

  /** @param attempt the one that was dispatched; frames of a later one end it */
  constructor(attempt = 0) {
    this.attempt = attempt;
  }

  /** Another attempt was dispatched. */
  restart(attempt: number): void {
    this.attempt = attempt;
    this.#received = 0;
  }

  take(frame: Frame): 'next' | 'stale' | 'gap' {
    if (frame.attempt < this.attempt) return 'stale';
    if (frame.attempt > this.attempt || frame.kind === 'accepted') this.restart(frame.attempt);
    if (frame.sequence < this.#received) return 'stale';
    if (frame.sequence > this.#received) return 'gap';
    this.#received += 1;
    return 'next';
  }
}
