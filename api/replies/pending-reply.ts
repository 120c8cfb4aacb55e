import type { ServerResponse } from 'node:http';
import type { AppError } from '../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../shared/billing/admitted-request.ts';
import type { QueueName } from '../../shared/queue/job-kinds.ts';
import type { FrameOrder } from './frame-order.ts';
import type { PooledBuffer } from '../../shared/runtime/buffer-pool.ts';

/** Receives the frames of one request. The last call is either `end` or `fail`, never both. */
export interface Receiver {
  /** The caller's HTTP response; memory is acquired once the size is known. Absent if memory was acquired earlier. */
  readonly response?: ServerResponse;
  delta(bytes: Buffer): void;
  /** Whether output so far allows another run after the worker died. Absent means that it does. */
  mayRestart?(): boolean;
  /** Passes the complete response, or the last bytes of a stream. */
  end(answer: PooledBuffer): void;
  fail(error: AppError): void;
}

/** A request that this process owns until it has responded. */
export interface PendingReply {
  readonly request: AdmittedRequest;
  readonly queue: QueueName;
  receiver: Receiver;
  readonly order: FrameOrder;
  /** The worker that accepted it; null while it is queued. */
  workerId: string | null;
  hasOutput: boolean;
  /** Completion tokens generated, as far as this process knows. */
  tokens: number;
  /** Called once no work for the request is left, also if its caller disconnected. */
  onEnded?: () => void;
}

/** Handles requests that get no response: dispatches them again, or settles and releases them. */
export interface ReplyOwner {
  /** Called once a second with the live workers, to find what was lost. */
  check(waiter: PendingReply, alive: ReadonlySet<string>): void;
  /** Called when a request ended without its worker settling it. */
  abandon(waiter: PendingReply): void;
  /** Takes a request without a worker off its queue. @returns whether its reply is no longer pending */
  withdraw(waiter: PendingReply): boolean;
}
