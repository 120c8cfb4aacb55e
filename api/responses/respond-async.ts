// decision 0053
import { jobPath } from '../../shared/contract/jobs.ts';
import type { Admitted, Attached } from '../admission/admit.ts';
import type { DurableWork } from '../jobs/durable-jobs.ts';
import type { ApiContext } from '../http/request/context.ts';
import { modelRequestOptionsOf } from '../http/request/model-request-options.ts';
import { keyHolderOf } from '../http/request/holder.ts';
import type { Services } from '../services.ts';
import { sendJob } from './send-job.ts';

/**
 * Responds to an admitted request with a durable job if its caller prefers that. If the same request was sent before
 * without that preference, it is not a job, so the response is synchronous; servers may ignore a preference.
 * @param createWork called for a request that was not sent before
 * @returns whether a response was sent
 */
export async function respondAsync(
  services: Services,
  context: ApiContext,
  admitted: Admitted | Attached,
  createWork: (admitted: Admitted) => Omit<DurableWork, 'webhookUrl'>,
): Promise<boolean> {
  const { respondsAsync, webhookUrl } = modelRequestOptionsOf(context);
  if (!respondsAsync) return false;
  const { durableJobs } = services;
  const { requestId } = admitted;
  const view =
    admitted.outcome === 'ok'
      ? await durableJobs.place(admitted.request, { ...createWork(admitted), webhookUrl })
      : await durableJobs.findOnceCreated(keyHolderOf(context).accountId, requestId, context.state.signal);
  if (view === null) return false;
  context.set({ location: jobPath(requestId), 'preference-applied': 'respond-async' });
  await sendJob(services, context, view, 202);
  return true;
}
