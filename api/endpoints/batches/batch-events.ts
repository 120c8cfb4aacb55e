import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import { hasBatchEnded, type BatchRecord } from '../../../shared/work/batches/batch-record.ts';
import { presentBatch } from '../../../shared/work/batches/present-batch.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitStreams } from '../../http/middleware/limit-account-calls.ts';
import { EventStream } from '../../requests/replies/event-stream.ts';
import type { Services } from '../../services.ts';
import { findBatch, type BatchContext } from './batches.ts';

const pollMs = 1_000;

export const streamBatchEvents = defineEndpoint(
  operations.streamBatchEvents,
  [authenticateAccount, limitStreams],
  (services) => async (context) => {
    const batch = await findBatch(services, context);
    const after = context.get('last-event-id') || (context.state.query.last_event_id ?? '');
    if (hasBatchEnded(batch) && writeEventId(batch) === after.trim()) {
      // An EventSource that gets a 204 does not reconnect.
      context.status = 204;
      return;
    }
    context.respond = false;
    const stream = new EventStream(context.res, services.firstCommentMs);
    try {
      stream.start();
      context.res.flushHeaders();
      if (context.method !== 'HEAD') await followBatch(services, context, stream, batch);
    } finally {
      stream.close();
    }
    context.res.end();
  },
);

/** An event's id says everything that changes while a batch runs. */
const writeEventId = ({ id, status, succeeded, failed }: BatchRecord): string =>
  `${status}.${succeeded}.${failed}.${id.slice(-8)}`;

/**
 * Writes an event for each change until the batch has ended, the client disconnects or the process stops. The stream
 * survives a Redis outage.
 */
async function followBatch(
  services: Services,
  context: BatchContext,
  stream: EventStream,
  first: BatchRecord,
): Promise<void> {
  const signal = AbortSignal.any([context.state.signal, services.durableJobs.closing]);
  let batch = first;
  let lastId = '';
  try {
    for (;;) {
      const id = writeEventId(batch);
      if (id !== lastId) {
        const data = JSON.stringify(presentBatch(batch, Date.now()));
        const event = `id: ${id}\nevent: ${batch.status}\ndata: ${data}\n\n`;
        // Clients may read slowly.
        if (!stream.write(event)) await once(context.res, 'drain', { signal });
        lastId = id;
      }
      if (hasBatchEnded(batch)) return;
      await delay(pollMs, undefined, { signal });
      batch = (await tryToFind(services, context)) ?? batch;
    }
  } catch (error) {
    if (!signal.aborted) Object.assign(context.state, { error: toAppError(error), isBroken: true });
  }
}

/** Returns null while Redis is down. */
async function tryToFind(services: Services, context: BatchContext): Promise<BatchRecord | null> {
  try {
    return await findBatch(services, context);
  } catch (error) {
    if (error instanceof AppError && error.code === 'service_unavailable') return null;
    throw error;
  }
}
