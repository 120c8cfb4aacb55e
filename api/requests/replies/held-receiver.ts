import type { ServerResponse } from 'node:http';
import type { AppError } from '../../../shared/contract/errors.ts';
import type { PooledBuffer } from '../../../shared/platform/runtime/buffer-pool.ts';
import type { Receiver } from './pending-reply.ts';

/**
 * Holds what arrives for a request until its admission is confirmed. A worker can accept a request, and even answer it,
 * before the api process has read the reply to the script that admitted and pushed it.
 */
export class HeldReceiver implements Receiver {
  readonly response: ServerResponse;
  readonly #held: ((receiver: Receiver) => void)[] = [];
  hasFailed = false;
  /** Called when the request fails. */
  onFailed: () => void = () => undefined;

  /** @param response the caller's HTTP response, for which memory is acquired if a large result is offered */
  constructor(response: ServerResponse) {
    this.response = response;
  }

  delta(bytes: Buffer): void {
    this.#held.push((receiver) => receiver.delta(bytes));
  }

  end(response: PooledBuffer): void {
    this.#held.push((receiver) => receiver.end(response));
  }

  fail(error: AppError): void {
    this.#held.push((receiver) => receiver.fail(error));
    this.hasFailed = true;
    this.onFailed();
  }

  /** Passes everything held to the receiver that replaces this one. Call once. */
  passTo(receiver: Receiver): void {
    for (const pass of this.#held) pass(receiver);
  }
}
