// decision 0080
import { maxCallsPerAccount } from '../../shared/contract/operation.ts';
import { describeJobFailure } from '../requests/stored-responses/job-failure.ts';
import { waitForEnd } from '../jobs/wait-for-end.ts';
import type { JobView } from '../jobs/job-text.ts';
import type { ApiContext, ApiMiddleware } from '../http/request/context.ts';
import { modelRequestOptionsOf } from '../http/request/model-request-options.ts';
import { callsHolderOf } from '../http/request/requester.ts';
import type { Services } from '../services.ts';
import { sendBody } from './send-body.ts';
import { readJobResponse, sendAccepted } from './send-job.ts';

/**
 * Waits for a job whose caller prefers its response, and sends what the synchronous call would have sent, or the job if
 * it takes too long. Comes before the body is read: the handlers have ended by then, so a wait of minutes holds no more
 * memory than its connection.
 */
export function awaitJob(services: Services): ApiMiddleware {
  return async (context, next) => {
    await next();
    const { awaitedJob: first, bodyMemory } = context.state;
    if (first === undefined) return;
    delete context.state.awaitedJob;
    delete context.state.bodyMemory;
    context.state.body = undefined;
    bodyMemory?.share.release();
    await sendOutcome(services, context, await waitWithinLimit(services, context, first));
  };
}

/**
 * A caller that follows more jobs than an account may does not wait, because a preference must never cause an error: its
 * job exists, and is paid for.
 */
async function waitWithinLimit(services: Services, context: ApiContext, first: JobView): Promise<JobView> {
  const { jobPolls, durableJobs, calls } = services;
  const { signal } = context.state;
  const holder = callsHolderOf(context);
  if (calls.streams.of(holder) >= maxCallsPerAccount) return first;
  calls.streams.change(holder, 1);
  try {
    const waitMs = (modelRequestOptionsOf(context).waitSeconds ?? 0) * 1_000;
    return (await waitForEnd(jobPolls, first, { waitMs, signal, closing: durableJobs.closing })) ?? first;
  } finally {
    calls.streams.change(holder, -1);
  }
}

async function sendOutcome(services: Services, context: ApiContext, view: JobView): Promise<void> {
  const { job } = view;
  if (job.status === 'failed') throw describeJobFailure(job);
  if (job.status !== 'succeeded') return await sendAccepted(services, context, view);
  const { body, failure, release } = await readJobResponse(services, context, job);
  try {
    if (failure === null) {
      context.set('preference-applied', `wait=${modelRequestOptionsOf(context).waitSeconds}`);
      return await sendBody(context, body);
    }
  } finally {
    release();
  }
  // The response was deleted.
  if (failure.status < 500) throw failure;
  // An error would make clients send the request again, and pay for it again.
  return await sendAccepted(services, context, view, failure);
}
