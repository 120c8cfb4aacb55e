import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { ChatJob } from '../../shared/work/queue/job-kinds.ts';
import { toUsage } from './chat-usage.ts';
import { Conversation } from './conversation.ts';
import {
  describeFailure,
  findFailureReason,
  withCharge,
  isModelFailure,
  isReplaced,
  missingModel,
  type JobDeps,
  type RequestRun,
} from './job-context.ts';
import { finishRun } from './finish-run.ts';
import { estimateImageBytes, withResponseMemory, type ResponseMemory } from './generation-memory.ts';

/**
 * Runs one chat: calls the model, forwards its output as it arrives, settles, and only then reports the cost to the
 * caller. Every outcome is settled and reported.
 */
export async function runChat(dependencies: JobDeps, job: ChatJob, run: RequestRun): Promise<void> {
  const { responseMemory } = dependencies;
  await withResponseMemory(responseMemory, job.request, (memory) =>
    runWithMemory(dependencies, job, run, memory),
  );
}

async function runWithMemory(
  dependencies: JobDeps,
  job: ChatJob,
  run: RequestRun,
  memory: ResponseMemory,
): Promise<void> {
  const conversation = new Conversation(job, run);
  let failure: { code: ReturnType<typeof describeFailure>['code']; message: string } | null = null;
  let reason: string | null = null;
  try {
    const model = dependencies.catalog.find(job.request.model);
    if (model === undefined) throw missingModel(job.request, run);
    if (job.body.stream !== true) await memory.acquire(estimateChatBytes(job, model), run.signal);
    await conversation.ask(dependencies, model);
  } catch (error) {
    if (isReplaced(run)) return;
    failure = describeFailure(error);
    reason = findFailureReason(error);
    if (failure.code === 'internal_error') run.log.error({ err: error }, 'chat failed');
  }
  const metered = conversation.measure();
  const outcome = {
    usage: toUsage(metered),
    counted: metered.counted,
    ...(metered.reasoningTokens !== null && { reasoningTokens: metered.reasoningTokens }),
    ...(conversation.firstTokenMs !== null && { firstTokenMs: conversation.firstTokenMs }),
    error: failure,
    reason,
    charged: conversation.isCharged,
    reachedModel: conversation.reachedModel || isModelFailure(failure),
  };
  await finishRun(dependencies, run, job.request, outcome, (receipt) =>
    conversation.conclude(dependencies, metered, receipt, memory),
  );
  if (failure !== null) run.reply.error(withCharge(failure, outcome.charged));
}

/**
 * Estimates the memory for a response. Only images are included: text is negligible, because it takes few bytes for its
 * price.
 */
function estimateChatBytes({ body }: ChatJob, { published }: CatalogModel): number {
  const modalities = body.modalities ?? published.output_modalities ?? [];
  return modalities.includes('image') ? estimateImageBytes(body.n ?? 1, null) : 0;
}
