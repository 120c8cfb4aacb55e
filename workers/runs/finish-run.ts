import {
  finishRequest,
  type Deliver,
  type RequestOutcome,
} from '../../shared/work/settlement/finish-request.ts';
import { toAppError } from '../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import { describeFailure, type JobDeps, type RequestRun } from './job-context.ts';

/**
 * Finishes a run: settles its request and delivers the response. A line of a batch is settled by its batch instead.
 * @param deliver is not called for a failure
 */
export async function finishRun(
  dependencies: JobDeps,
  { line }: Pick<RequestRun, 'line'>,
  request: AdmittedRequest,
  outcome: RequestOutcome,
  deliver: Deliver,
): Promise<void> {
  if (line === undefined) {
    await finishRequest(dependencies, request, outcome, deliver);
    return;
  }
  const receipt = line.settle(outcome);
  if (outcome.error !== null) return;
  try {
    await deliver(receipt);
  } catch (error) {
    line.settle({ ...outcome, error: describeFailure(toAppError(error)), charged: false });
  }
}
