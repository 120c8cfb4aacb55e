import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, toAppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import { nextWorkTurn } from '../../../shared/fairness/work-turns.ts';
import { hasEnded } from '../../../shared/work/jobs/job-record.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitStreams } from '../../http/middleware/limit-account-calls.ts';
import {
  frameJobEvent,
  listJobEvents,
  parseEventId,
  type EventId,
  type JobEvent,
} from './present-job-events.ts';
import type { JobView } from '../../jobs/job-text.ts';
import { sendChunks } from '../../http/responses/send-chunks.ts';
import { EventStream } from '../../requests/replies/event-stream.ts';
import { wrapBody } from '../../../shared/responses/wrap-body.ts';
import type { ApiContext } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';
import { findJob, pollJob, type JobContext } from './jobs.ts';
import { readJobResponse } from '../../responses/send-job.ts';

/** Interval for polling a job (ms): after a change, and the maximum while nothing changes. */
const minPollMs = 200;
const maxPollMs = 1_000;
export const streamJobEvents = defineEndpoint(
  operations.streamJobEvents,
  [authenticateAccount, limitStreams],
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
    const stream = new EventStream(context.res, services.firstCommentMs);
    try {
      stream.start();
      context.res.flushHeaders();
      if (context.method !== 'HEAD') await followJob(services, context, { stream, first: view, after });
    } finally {
      stream.close();
    }
    context.res.end();
  },
);

interface FollowOptions {
  readonly stream: EventStream;
  readonly first: JobView;
  /** The last event that the client has; null for none. */
  readonly after: EventId | null;
}

/**
 * Writes the events of a job until the job has ended, the client disconnects or the process stops. The stream survives
 * a Redis outage. Any other failure ends it, and a client that reconnects resumes after its last event.
 */
async function followJob(
  services: Services,
  context: JobContext,
  { stream, first, after }: FollowOptions,
): Promise<void> {
  const signal = AbortSignal.any([context.state.signal, services.durableJobs.closing]);
  let view = first;
  let cursor = after;
  let pollMs = minPollMs;
  try {
    for (;;) {
      const events = listJobEvents(view, cursor);
      for (const event of events) {
        await sendEvent(services, { context, stream }, event, signal);
        if (event.isLast) return;
        cursor = event.id;
      }
      pollMs = events.length > 0 ? minPollMs : Math.min(maxPollMs, pollMs * 1.25);
      await delay(pollMs, undefined, { signal });
      view = (await tryToPoll(services, context)) ?? view;
    }
  } catch (error) {
    if (!signal.aborted) Object.assign(context.state, { error: toAppError(error), isBroken: true });
  }
}

/**
 * Returns null while Redis is down. The stream then stays open: an EventSource that reconnected would get a 503 and
 * never try again.
 */
async function tryToPoll(services: Services, context: JobContext): Promise<JobView | null> {
  try {
    return await pollJob(services, context);
  } catch (error) {
    if (error instanceof AppError && error.code === 'service_unavailable') return null;
    throw error;
  }
}

async function sendEvent(
  services: Services,
  { context, stream }: { readonly context: ApiContext; readonly stream: EventStream },
  event: JobEvent,
  signal: AbortSignal,
): Promise<void> {
  // A large response may wait for memory or for the object store.
  const { body, failure, release } = await readJobResponse(services, context, event.job);
  try {
    const [before, end] = frameJobEvent(event, failure, services.publicUrl);
    if (!event.isLast) {
      signal.throwIfAborted();
      // Clients may read slowly.
      if (!stream.write(`${before}null${end}`)) await once(context.res, 'drain', { signal });
      return;
    }
    stream.close();
    await sendChunks(context.res, wrapBody(before, body, end), () => nextWorkTurn(event.job.accountId));
  } finally {
    release();
  }
}
