import {
  finishRequest,
  type Deliver,
  type Receipt,
  type RequestOutcome,
} from '../../shared/work/settlement/finish-request.ts';
import { toAppError } from '../../shared/contract/errors.ts';
import { describeFacts } from '../../shared/work/replies/describe-facts.ts';
import type { Span } from '../../shared/platform/tracing/tracing.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import { describeFailure, type JobDeps, type RequestRun } from './job-context.ts';
import type { RunOutcome } from './run-facts.ts';

/**
 * Finishes a run: settles its request, tells what was done for it, and delivers the response. A line of a batch is settled
 * by its batch instead.
 * @param deliver is not called for a failure
 */
export async function finishRun(
  dependencies: JobDeps,
  run: Pick<RequestRun, 'line' | 'facts' | 'reply' | 'log'>,
  request: AdmittedRequest,
  ended: RunOutcome,
  deliver: Deliver,
): Promise<void> {
  const outcome = { ...ended, ...run.facts?.record(ended) };
  try {
    await settleRun(dependencies, run, request, outcome, deliver);
  } finally {
    const span = run.facts?.span ?? null;
    if (span !== null) endRunSpan(span, outcome);
  }
}

/** The tokens are those that are settled, unless nothing is charged. */
function endRunSpan(span: Span, { error, charged, usage }: RequestOutcome): void {
  span.set({
    'error.type': error?.code,
    ...(charged && {
      'gen_ai.usage.input_tokens': usage.promptTokens,
      'gen_ai.usage.output_tokens': usage.completionTokens,
    }),
  });
  if (error !== null) span.fail();
  span.end();
}

async function settleRun(
  dependencies: JobDeps,
  run: Pick<RequestRun, 'line' | 'facts' | 'reply' | 'log'>,
  request: AdmittedRequest,
  outcome: RequestOutcome,
  deliver: Deliver,
): Promise<void> {
  const { line } = run;
  if (line === undefined) {
    const isDurable = request.jobAttempt !== undefined;
    const finished = await finishRequest(dependencies, request, outcome, async (delivered) => {
      // The caller's response may end with what `deliver` sends.
      if (!isDurable) reportFacts(dependencies, run, request, outcome, delivered);
      return await deliver(delivered);
    });
    // Another attempt reports a job that this one could not settle.
    if (isDurable ? finished.isSettled : outcome.error !== null)
      reportFacts(dependencies, run, request, outcome, finished.receipt);
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

/** The api process logs a request whose caller waits. A durable job is logged here. */
function reportFacts(
  { runMetrics, endedWork }: JobDeps,
  { facts, reply, log }: Pick<RequestRun, 'facts' | 'reply' | 'log'>,
  request: AdmittedRequest,
  outcome: RequestOutcome,
  receipt: Receipt,
): void {
  if (facts === undefined) return;
  const described = facts.describe(outcome, receipt);
  runMetrics?.note(request, described);
  endedWork?.note(request.model);
  if (request.jobAttempt === undefined) {
    if (request.wantsFacts === true) reply.facts(described);
    return;
  }
  const { accountId, model, jobAttempt: attempt } = request;
  const { error } = outcome;
  const { durationMs } = receipt;
  const line: Record<string, unknown> = { accountId, model, attempt, durationMs };
  if (error !== null) line['code'] = error.code;
  describeFacts(described, line);
  log.info(line, 'job ended');
}
