import type { ServerResponse } from 'node:http';
import { AppError } from '../../shared/contract/errors.ts';

/** Smaller answers are not worth counting. */
const countedFromBytes = 256 * 1024;
/** Who waits for longer is told to come back. */
const patienceMs = 60_000;
/** Smaller ones pass one that the room is too small for, but not for longer than this. */
const passingMs = 5_000;
const maxWaitingOfAccount = 256;

interface Waiting {
  readonly accountId: string;
  readonly bytes: number;
  readonly sinceMs: number;
  readonly enter: () => void;
}

/**
 * What large answers may hold of a process's memory together, from before they are asked for until their callers have
 * read them: those who read slowly would hold any number of them. Where there is no room they wait in line, in which
 * accounts take turns; one account has half of the room at the most.
 */
export class AnswerRoom {
  readonly #bytes: number;
  #held = 0;
  readonly #heldBy = new Map<string, number>();
  /** By account, in the order of their turns. */
  readonly #line = new Map<string, Set<Waiting>>();

  readonly #nowMs: () => number;

  constructor(bytes: number, nowMs = () => performance.now()) {
    this.#bytes = bytes;
    this.#nowMs = nowMs;
  }

  get heldBytes(): number {
    return this.#held;
  }

  /**
   * Resolves when there is room for an answer of this length, with what gives it back.
   * @throws AppError `queue_full` where there is none for a minute, `job_cancelled` when the caller leaves
   */
  async enter(accountId: string, bytes: number, response: ServerResponse): Promise<() => void> {
    if (bytes < countedFromBytes) return () => undefined;
    if (response.destroyed) throw new AppError('job_cancelled');
    if ((this.#line.get(accountId)?.size ?? 0) >= maxWaitingOfAccount) throw noRoom();
    let timer: NodeJS.Timeout | undefined;
    let onClose = (): void => undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        const waiting: Waiting = { accountId, bytes, sinceMs: this.#nowMs(), enter: resolve };
        const giveUp = (error: AppError): void => {
          this.#leaveLine(waiting);
          reject(error);
          // It may have been the one that the others were behind.
          this.#admit();
        };
        timer = setTimeout(() => giveUp(noRoom()), patienceMs);
        onClose = () => giveUp(new AppError('job_cancelled'));
        response.once('close', onClose);
        const ofAccount = this.#line.get(accountId);
        if (ofAccount === undefined) this.#line.set(accountId, new Set([waiting]));
        else ofAccount.add(waiting);
        this.#admit();
      });
    } finally {
      clearTimeout(timer);
      response.off('close', onClose);
    }
    return () => this.#give(accountId, bytes);
  }

  #admit(): void {
    for (let next = this.#findNext(); next !== null; next = this.#findNext()) {
      const { accountId, bytes, enter } = next;
      this.#leaveLine(next);
      const others = this.#line.get(accountId);
      if (others !== undefined) {
        this.#line.delete(accountId);
        this.#line.set(accountId, others);
      }
      this.#held += bytes;
      this.#heldBy.set(accountId, (this.#heldBy.get(accountId) ?? 0) + bytes);
      enter();
    }
  }

  /** Who has its account's share is passed over; whom the room itself is too small for is waited for in the end. */
  #findNext(): Waiting | null {
    for (const [accountId, [first]] of this.#line) {
      const { bytes, sinceMs } = first!;
      const own = this.#heldBy.get(accountId) ?? 0;
      const left = this.#bytes - this.#held;
      if (own > 0 && bytes + own > (left + own) / 2) continue;
      if (this.#held === 0 || bytes <= left) return first!;
      if (this.#nowMs() - sinceMs > passingMs) return null;
    }
    return null;
  }

  #leaveLine(waiting: Waiting): void {
    const ofAccount = this.#line.get(waiting.accountId);
    if (ofAccount?.delete(waiting) && ofAccount.size === 0) this.#line.delete(waiting.accountId);
  }

  #give(accountId: string, bytes: number): void {
    this.#held -= bytes;
    const own = (this.#heldBy.get(accountId) ?? 0) - bytes;
    if (own > 0) this.#heldBy.set(accountId, own);
    else this.#heldBy.delete(accountId);
    this.#admit();
  }
}

function noRoom(): AppError {
  return new AppError('queue_full', {
    message: 'Too many large answers are under way. Read those that are, and try again shortly.',
  });
}
