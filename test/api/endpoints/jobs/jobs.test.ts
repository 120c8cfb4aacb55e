import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import test, { type ExecutionContext } from 'ava';
import Koa from 'koa';
import { streamJobEvents } from '../../../../api/endpoints/jobs/job-events.ts';
import { cancelJob } from '../../../../api/endpoints/jobs/jobs.ts';
import { JobPolls } from '../../../../api/jobs/job-polls.ts';
import { renderError } from '../../../../api/http/middleware/render-error.ts';
import type { RequestState } from '../../../../api/http/request/context.ts';
import { requestContext } from '../../../../api/http/middleware/request-context.ts';
import { validate } from '../../../../api/http/middleware/validate.ts';
import type { JobView } from '../../../../api/jobs/job-text.ts';
import type { Services } from '../../../../api/services.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { FairBudget } from '../../../../shared/fairness/fair-budget.ts';
import { captureLog, type CapturedLog } from '../../../support/captured-log.ts';
import { parseNamedEvents } from '../../../support/named-events.ts';
import { showJob, shownJobId } from '../../../support/show-job.ts';

/** Calls to the jobs API while the job changes, or Redis fails, between two reads of the job. */

interface TestServer extends CapturedLog {
  readonly url: string;
  /** Resolves when the first call has been handled, even if its caller has disconnected. */
  readonly handled: Promise<unknown>;
}

/** @param find called for each read of the job; may throw */
async function serve(t: ExecutionContext, find: () => Promise<JobView | null>): Promise<TestServer> {
  const captured = captureLog();
  const durableJobs = { find, cancel: async () => true, closing: new AbortController().signal };
  const services = {
    durableJobs,
    redisTurns: new FairBudget({ capacity: 8 }),
    jobPolls: new JobPolls(async () => [await find()].filter((view) => view !== null)),
  } as unknown as Services;
  const router = new Router<RequestState>();
  router.delete('/v1/jobs/:job_id', validate(cancelJob.operation), cancelJob.createHandler(services));
  router.get(
    '/v1/jobs/:job_id/events',
    validate(streamJobEvents.operation),
    streamJobEvents.createHandler(services),
  );
  const app = new Koa<RequestState>();
  app.use(requestContext(captured.log)).use(renderError(captured.log));
  app.use(async (context, next) => {
    context.state.holder = { accountId: 'account', keyHash: 'hash' };
    await next();
  });
  app.use(router.routes());
  const handle = app.callback();
  const calls = new EventEmitter();
  const server = createServer(
    (request, response) => void handle(request, response).then(() => calls.emit('handled')),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  return {
    ...captured,
    handled: once(calls, 'handled'),
    url: `http://127.0.0.1:${port}/v1/jobs/${shownJobId}`,
  };
}

test('a caller that cancels a job and disconnects is not logged as a failure, and the job is not read again', async (t) => {
  const caller = new AbortController();
  let reads = 0;
  const { url, lines, waitForLine, handled } = await serve(t, async () => {
    reads += 1;
    caller.abort();
    return showJob(['queued', 'active']);
  });
  await t.throwsAsync(fetch(url, { method: 'DELETE', signal: caller.signal }), { any: true });
  await handled;
  t.is((await waitForLine(({ msg }) => msg === 'request'))['status'], 499);
  t.false(lines.some(({ msg }) => msg === 'request failed'));
  t.true(reads <= 2, `${reads} reads`);
});

test('an event stream survives an outage of Redis, and sends the remaining events afterwards', async (t) => {
  const unavailable = new AppError('service_unavailable');
  const reads = [
    showJob(['queued'], { position: 3 }),
    unavailable,
    unavailable,
    showJob(['queued', 'failed']),
  ];
  const { url } = await serve(t, async () => {
    const next = reads.shift()!;
    if (next instanceof AppError) throw next;
    return next;
  });
  const events = parseNamedEvents(await (await fetch(`${url}/events`)).text());
  t.deepEqual(
    events.map(({ name }) => name),
    ['queued', 'failed'],
  );
});

test('the event stream of a job ends when the job expires, and reconnecting to it is a 404', async (t) => {
  const reads = [showJob(['queued'], { position: 3 })];
  const { url } = await serve(t, async () => reads.shift() ?? null);
  const events = parseNamedEvents(await (await fetch(`${url}/events`)).text());
  t.deepEqual(
    events.map(({ name }) => name),
    ['queued'],
  );
  t.is((await fetch(`${url}/events`, { headers: { 'last-event-id': events[0]!.id } })).status, 404);
});
