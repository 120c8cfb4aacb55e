import { jobPath } from '../../shared/contract/jobs.ts';
import type { DurableWork } from '../dispatch/durable-jobs.ts';
import type { Admitted, Attached } from '../middleware/admit.ts';
import { holderOf } from '../middleware/authenticate.ts';
import { callerSignal } from '../middleware/caller-signal.ts';
import { creationOptionsOf } from '../middleware/creation-options.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import type { Services } from '../services.ts';
import { sendJob } from './send-job.ts';

/**
 * Answers an admitted request with a durable job, where its caller prefers one. A caller whose request was sent before, and
 * synchronously, gets a synchronous response: servers may ignore a preference.
 * @param createWork of a request that was not sent before
 * @returns whether it was answered
 */
export async function respondAsync(
  services: Services,
  context: ApiContext,
  admitted: Admitted | Attached,
  createWork: (admitted: Admitted) => Omit<DurableWork, 'webhookUrl'>,
): Promise<boolean> {
  const { respondsAsync, webhookUrl } = creationOptionsOf(context);
  if (!respondsAsync) return false;
  const { durableJobs } = services;
  const { requestId } = admitted;
  const shown =
    admitted.outcome === 'ok'
      ? await durableJobs.place(admitted.request, { ...createWork(admitted), webhookUrl })
      : await durableJobs.findWhenPlaced(holderOf(context).accountId, requestId, callerSignal(context.res));
  if (shown === null) return false;
  context.set({ location: jobPath(requestId), 'preference-applied': 'respond-async' });
  await sendJob(services, context, shown, 202);
  return true;
}
