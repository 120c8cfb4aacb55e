import type { ServerResponse } from 'node:http';
import type { PooledBuffer } from '../../../shared/platform/runtime/buffer-pool.ts';
import type { Receiver } from './pending-reply.ts';

/** A receiver that provides the complete response as a promise. */
export interface WholeReceiver {
  readonly receiver: Receiver;
  readonly answer: Promise<PooledBuffer>;
}

/** @param response the HTTP response to acquire memory for once the result is available */
export function receiveWhole(response?: ServerResponse): WholeReceiver {
  let settle: { resolve: (answer: PooledBuffer) => void; reject: (error: unknown) => void };
  const answer = new Promise<PooledBuffer>((resolve, reject) => {
    settle = { resolve, reject };
  });
  // Callers that await it see the failure. A failure before anyone awaits must not crash the process.
  answer.catch(() => undefined);
  let isSettled = false;
  const receiver: Receiver = {
    ...(response === undefined ? {} : { response }),
    delta: () => undefined,
    end(result) {
      // The caller has disconnected or has already received an error.
      if (isSettled) result.release();
      isSettled = true;
      settle.resolve(result);
    },
    fail(error) {
      isSettled = true;
      settle.reject(error);
    },
  };
  return { receiver, answer };
}
