import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../../shared/contract/operations.ts';
import { nextWorkTurn } from '../../../shared/fairness/work-turns.ts';
import { hasEnded } from '../../../shared/jobs/job-record.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticate } from '../../middleware/authenticate.ts';
import { limitStreams } from '../../middleware/limit-account-calls.ts';
import {
  frameJobEvent,
  listJobEvents,
  parseEventId,
  type EventId,
  type JobEvent,
} from '../../present/job-events.ts';
import type { JobView } from '../../present/job-text.ts';
import { sendChunks } from '../../present/send-chunks.ts';
import { eventStreamHeaders, keepAliveMs } from '../../replies/sse-stream.ts';
import { whileKeptAlive } from '../../replies/while-kept-alive.ts';
import { wrapBody } from '../../present/wrap-body.ts';
import type { ApiContext } from '../../request/context.ts';
import type { Services } from '../../services.ts';
import { findJob, type JobContext } from './jobs.ts';
import { readJobResponse } from './send-job.ts';

/** Interval for polling a job (ms): after a change, and the maximum while nothing changes. */
const minPollMs = 200;
const maxPollMs = 1_000;
/**
 * How long the stream may be silent before a keep-alive comment is written. One poll interval less than the limit,
 * because comments are written only after a poll, and the next one might be too late.
 */
const silentMs = keepAliveMs - maxPollMs;

export const streamJobEvents = defineEndpoint(
  operations.streamJobEvents,
  [authenticate, limitStreams],
  (services) => async (context) => {
    const view = await findJob(services, context);
    const query = context.state.query;
    const after = parseEventId(context.get('last-event-id') || query.last_event_id, view.job.id);
    if (hasEnded(view.job) && listJobEvents(view, after).length === 0) {
      // An EventSource that gets a 204 does not reconnect.
      context.status = 204;
      return;
    }
    context.respond = false;
    context.res.writeHead(200, eventStreamHeaders);
    context.res.flushHeaders();
    if (context.method !== 'HEAD') await followJob(services, context, view, after);
    context.res.end();
  },
);

/**
 * Writes the events of a job until the job has ended, the client disconnects or the process stops. The stream survives
 * a Redis outage. Any other failure ends it, and a client that reconnects resumes after its last event.
 */
async function followJob(
  services: Services,
  context: JobContext,
  first: JobView,
  after: EventId | null,
): Promise<void> {
  const signal = AbortSignal.any([context.state.signal, services.durableJobs.closing]);
  let view = first;
  let cursor = after;
  let pollMs = minPollMs;
  let writtenAtMs = performance.now();
  try {
    for (;;) {
      const events = listJobEvents(view, cursor);
      for (const event of events) {
        await sendEvent(services, context, event, signal);
        if (event.isLast) return;
        cursor = event.id;
      }
      if (events.length > 0) writtenAtMs = performance.now();
      else if (performance.now() - writtenAtMs > silentMs) {
        await write(context.res, ': keep-alive\n\n', signal);
        writtenAtMs = performance.now();
      }
      pollMs = events.length > 0 ? minPollMs : Math.min(maxPollMs, pollMs * 1.25);
      await delay(pollMs, undefined, { signal });
      view = (await pollJob(services, context)) ?? view;
    }
  } catch (error) {
    if (!signal.aborted) context.state.error = toAppError(error);
  }
}

/**
 * Returns null while Redis is down. The stream then stays open: an EventSource that reconnected would get a 503 and
 * never try again.
 */
async function pollJob(services: Services, context: JobContext): Promise<JobView | null> {
  try {
    return await findJob(services, context);
  } catch (error) {
    if (error instanceof AppError && error.code === 'service_unavailable') return null;
    throw error;
  }
}

async function sendEvent(
  services: Services,
  context: ApiContext,
  event: JobEvent,
  signal: AbortSignal,
): Promise<void> {
  // A large response may wait for memory or for the object store.
  const reading = readJobResponse(services, context, event.job);
  const { body, failure, release } = await whileKeptAlive(context.res, reading);
  try {
    const [before, end] = frameJobEvent(event, failure);
    if (!event.isLast) {
      await write(context.res, `${before}null${end}`, signal);
      return;
    }
    await sendChunks(context.res, wrapBody(before, body, end), () => nextWorkTurn(event.job.accountId));
  } finally {
    release();
  }
}

/** Writes text, and waits for clients that read slowly. */
async function write(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!response.write(text)) await once(response, 'drain', { signal });
}
