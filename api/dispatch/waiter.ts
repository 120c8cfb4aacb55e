import type { ServerResponse } from 'node:http';
import type { AppError } from '../../shared/contract/errors.ts';
import type { AdmittedRequest, QueueName } from '../../shared/queue/job-kinds.ts';
import type { FrameOrder } from '../../shared/reply/frame-order.ts';
import type { LentBuffer } from '../../shared/runtime/buffer-pool.ts';

/** Takes what comes for one request. `end` and `fail` are the last calls, and only one of them comes. */
export interface Receiver {
  /** Whose caller it is for: memory for an answer is acquired once its size is known. Absent where that was done before. */
  readonly response?: ServerResponse;
  delta(bytes: Buffer): void;
  /** Another run of a job begins, whose worker died after output: whether what was handed over lets it. Absent: it does. */
  mayRestart?(): boolean;
  /** A whole answer, or the last bytes of a stream. */
  end(answer: LentBuffer): void;
  fail(error: AppError): void;
}

/** One request that this process owns until it has answered it. */
export interface Waiter {
  readonly request: AdmittedRequest;
  readonly queue: QueueName;
  receiver: Receiver;
  readonly order: FrameOrder;
  /** The worker that accepted it; null while it is queued. */
  workerId: string | null;
  hasOutput: boolean;
  /** Completion tokens that were generated, as far as this process knows. */
  tokens: number;
  /** Called once nothing is done for it any more, also for a caller who left. */
  onEnded?: () => void;
}

/** What must be done for a request that will get no answer: dispatch it again, or settle and release it. */
export interface WaiterOwner {
  /** Once a second, with the workers that live: finds what was lost on the way. */
  check(waiter: Waiter, alive: ReadonlySet<string>): void;
  /** The request ended without its worker settling it. */
  abandon(waiter: Waiter): void;
  /** Takes a request that no worker has off its queue. @returns whether nobody waits for it any more */
  withdraw(waiter: Waiter): boolean;
}
