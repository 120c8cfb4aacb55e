import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import type { JobEventsQuery } from '../../shared/contract/jobs.ts';
import { hasEnded } from '../../shared/jobs/job-record.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import { callerSignal } from '../middleware/caller-signal.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import {
  frameJobEvent,
  listJobEvents,
  parseEventId,
  type EventId,
  type JobEvent,
} from '../present/job-events.ts';
import type { ShownJob } from '../present/job-text.ts';
import { sendChunks } from '../present/send-chunks.ts';
import { eventStreamHeaders, keepAliveMs } from '../present/sse-stream.ts';
import { whileKeptAlive } from '../present/while-kept-alive.ts';
import { wrapBody } from '../present/wrap-body.ts';
import type { Services } from '../services.ts';
import { findJob } from './jobs.ts';
import { readJobResponse } from './send-job.ts';

/** How often a job is looked at: at first, and at the least while nothing changes. */
const shortestLookMs = 200;
const longestLookMs = 1_000;
/** The next look is soon enough for a comment that is due before it. */
const silentMs = keepAliveMs - longestLookMs;

export function streamJobEvents(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const shown = await findJob(services, context);
    const query = context.state.query as JobEventsQuery;
    const after = parseEventId(context.get('last-event-id') || query.last_event_id, shown.job.id);
    if (hasEnded(shown.job) && listJobEvents(shown, after).length === 0) {
      // Tells an EventSource not to connect again.
      context.status = 204;
      return;
    }
    context.respond = false;
    context.res.writeHead(200, eventStreamHeaders);
    context.res.flushHeaders();
    if (context.method !== 'HEAD') await followJob(services, context, shown, after);
    context.res.end();
  };
}

/**
 * Writes the events of a job until it has ended, its caller has left or the process stops. An outage of Redis is waited for,
 * and any other failure ends the stream: a client that connects again goes on where it was.
 */
async function followJob(
  services: Services,
  context: ApiContext,
  first: ShownJob,
  after: EventId | null,
): Promise<void> {
  const signal = AbortSignal.any([callerSignal(context.res), services.durableJobs.closing]);
  let shown = first;
  let cursor = after;
  let lookMs = shortestLookMs;
  let writtenAtMs = performance.now();
  try {
    for (;;) {
      const events = listJobEvents(shown, cursor);
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
      lookMs = events.length > 0 ? shortestLookMs : Math.min(longestLookMs, lookMs * 1.25);
      await delay(lookMs, undefined, { signal });
      shown = (await lookAgain(services, context)) ?? shown;
    }
  } catch (error) {
    if (!signal.aborted) context.state.error = toAppError(error);
  }
}

/**
 * Null while Redis is away. The stream outlasts that: an EventSource that connects again meanwhile is answered with a 503, and
 * gives up for good.
 */
async function lookAgain(services: Services, context: ApiContext): Promise<ShownJob | null> {
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
  // A large response may wait for memory, or for the object store.
  const reading = readJobResponse(services, context, event.job);
  const { body, failure, giveBack } = await whileKeptAlive(context.res, reading);
  try {
    const [before, behind] = frameJobEvent(event, failure);
    if (!event.isLast) {
      await write(context.res, `${before}null${behind}`, signal);
      return;
    }
    await sendChunks(context.res, wrapBody(before, body, behind), () => nextWorkTurn(event.job.accountId));
  } finally {
    giveBack();
  }
}

/** Waits for a caller who reads slowly. */
async function write(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!response.write(text)) await once(response, 'drain', { signal });
}
