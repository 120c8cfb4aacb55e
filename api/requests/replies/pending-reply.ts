import type { ServerResponse } from 'node:http';
import type { AppError } from '../../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import type { QueueName } from '../../../shared/work/queue/job-kinds.ts';
import type { FrameOrder } from './frame-order.ts';
import type { PooledBuffer } from '../../../shared/platform/runtime/buffer-pool.ts';

/** Receives the frames of one request. The last call is either `end` or `fail`, never both. */
export interface Receiver {
  /**
   * The caller's HTTP response, for which memory is acquired once its size is known. Absent if that was done earlier.
   */
  readonly response?: ServerResponse;
  delta(bytes: Buffer): void;
  /** Whether the request can run again after its worker died, given the output so far. Absent means yes. */
  mayRestart?(): boolean;
  /** Passes the complete response, or the last bytes of a stream. */
  end(response: PooledBuffer): void;
  fail(error: AppError): void;
}

/** A request that this process owns until it has sent the response. */
export interface PendingReply {
  readonly request: AdmittedRequest;
  readonly queue: QueueName;
  receiver: Receiver;
  readonly order: FrameOrder;
  /** The worker that accepted the request; null while it is queued. */
  workerId: string | null;
  hasOutput: boolean;
  /** Completion tokens generated, as far as this process knows. */
  tokens: number;
  /** Called when a worker has accepted the request. */
  onAccepted?: () => void;
  /** Called when no work for the request remains, even if its caller disconnected earlier. */
  onEnded?: () => void;
}

/**
 * The dispatcher that owns a request. Handles requests that get no response: dispatches them again, settles them or
 * releases their reservations.
 */
export interface ReplyOwner {
  /** How many checks in a row must find no reservation until the remaining frames of a request count as lost. */
  readonly checksUntilLost: number;
  /** Called once a second with the live workers, to find lost requests. */
  check(pending: PendingReply, alive: ReadonlySet<string>): void;
  /** Called when a request ended without its worker settling it. */
  abandon(pending: PendingReply): void;
  /** Whether a worker may run the request, or may have run it. */
  mayRun(pending: PendingReply): boolean;
  /** Removes a request without a worker from its queue. @returns whether its reply is no longer pending */
  withdraw(pending: PendingReply): boolean;
}
