// decisions 0053, 0080
import type { Admitted, Attached } from '../admission/admit.ts';
import type { EndpointWork } from '../jobs/durable-jobs.ts';
import type { JobView } from '../jobs/job-text.ts';
import type { ApiContext } from '../http/request/context.ts';
import { modelRequestOptionsOf } from '../http/request/model-request-options.ts';
import { holderOf } from '../http/request/holder.ts';
import type { Services } from '../services.ts';
import { sendAccepted } from './send-job.ts';

/**
 * Responds to an admitted request with a durable job if its caller prefers that. If the same request was sent before
 * without that preference, it is not a job, so the response is synchronous; servers may ignore a preference. If the
 * caller waits for the response, `awaitJob` sends it, once nothing holds the body of the request any more.
 * @param createWork called for a request that was not sent before
 * @returns whether a response was sent, or will be
 */
export async function respondAsync(
  services: Services,
  context: ApiContext,
  admitted: Admitted | Attached,
  createWork: (admitted: Admitted) => EndpointWork,
): Promise<boolean> {
  const { respondsAsync, waitSeconds } = modelRequestOptionsOf(context);
  if (!respondsAsync) return false;
  const view = await placeOrFind(services, context, admitted, createWork);
  if (view === null) return false;
  if (waitSeconds === null) await sendAccepted(services, context, view);
  else context.state.awaitedJob = view;
  return true;
}

/** Returns null if the request was sent before and is not a job. */
async function placeOrFind(
  { durableJobs, publicUrl }: Services,
  context: ApiContext,
  admitted: Admitted | Attached,
  createWork: (admitted: Admitted) => EndpointWork,
): Promise<JobView | null> {
  if (admitted.outcome === 'attached') {
    const { accountId } = holderOf(context);
    return await durableJobs.findOnceCreated(accountId, admitted.requestId, context.state.signal);
  }
  const { cancelAfterMs, webhookUrl, webhookEvents } = modelRequestOptionsOf(context);
  const options = { cancelAfterMs, webhookUrl, webhookEvents, publicUrl };
  return await durableJobs.place(admitted.request, { ...createWork(admitted), ...options });
}
