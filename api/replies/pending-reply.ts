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
  /** The worker that accepted it; null while it is queued. */
  workerId: string | null;
  hasOutput: boolean;
  /** Completion tokens generated, as far as this process knows. */
  tokens: number;
  /** Called when no work for the request remains, even if its caller disconnected earlier. */
  onEnded?: () => void;
}

/** Handles requests that get no response: dispatches them again, or settles and releases them. */
export interface ReplyOwner {
  /** Called once a second with the live workers, to find lost requests. */
  check(pending: PendingReply, alive: ReadonlySet<string>): void;
  /** Called when a request ended without its worker settling it. */
  abandon(pending: PendingReply): void;
  /** Takes a request without a worker off its queue. @returns whether its reply is no longer pending */
  withdraw(pending: PendingReply): boolean;
}
