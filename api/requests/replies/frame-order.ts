import type { Frame } from '../../../shared/work/replies/frame.ts';

/**
 * Checks the order of one request's frames. Frames of an earlier attempt are stale, and so is the second copy of a
 * frame that was sent twice. A gap in the latest attempt means that frames were lost.
 */
export class FrameOrder {
  attempt: number;
  #received = 0;

  /** @param attempt the attempt that was dispatched; frames of a later one supersede it */
  constructor(attempt = 0) {
    this.attempt = attempt;
  }

  /** Expects the frames of another attempt from their beginning. */
  restart(attempt: number): void {
    this.attempt = attempt;
    this.#received = 0;
  }

  /** Classifies a received frame. After the expected frame, expects the next one in sequence. */
  classify(frame: Frame): 'next' | 'stale' | 'gap' {
    if (frame.attempt < this.attempt) return 'stale';
    if (frame.attempt > this.attempt || frame.kind === 'accepted') this.restart(frame.attempt);
    if (frame.sequence < this.#received) return 'stale';
    if (frame.sequence > this.#received) return 'gap';
    this.#received += 1;
    return 'next';
  }
}
