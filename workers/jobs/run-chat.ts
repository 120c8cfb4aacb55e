import { finishRequest, type Receipt } from '../../shared/billing/finish-request.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { ChatJob } from '../../shared/queue/job-kinds.ts';
import { callRoute } from '../routing/call-route.ts';
import { UpstreamError, type ChatBody, type ChatEvent, type UpstreamUsage } from '../upstreams/upstream.ts';
import { ChatAnswer } from './chat-answer.ts';
import { ChatChunks } from './chat-chunks.ts';
import { countDelta } from './count-delta.ts';
import { isCounted, presentUsage, toUsage, type ChatMeter } from './chat-usage.ts';
import {
  createCallContext,
  describeFailure,
  isReplaced,
  sendResult,
  type JobDependencies,
  type RequestRun,
} from './job-context.ts';

/**
 * Runs one interactive chat: asks the model, sends what it says as it comes, settles, and only then tells the caller
 * what it cost. Never rejects: every way it can go is settled and told.
 */
export async function runChat(dependencies: JobDependencies, job: ChatJob, run: RequestRun): Promise<void> {
  const conversation = new Conversation(job, run);
  let failure: { code: ReturnType<typeof describeFailure>['code']; message: string } | null = null;
  try {
    const model = dependencies.catalog.find(job.request.model);
    if (model === undefined)
      throw new AppError('model_disabled', { message: 'The model was taken from the catalog.' });
    await conversation.ask(dependencies, model);
  } catch (error) {
    if (isReplaced(run)) return;
    failure = describeFailure(error);
    if (failure.code === 'internal_error') run.log.error({ err: error }, 'chat failed');
  }
  const meter = conversation.meter();
  const receipt = await finishRequest(dependencies, job.request, {
    usage: toUsage(meter),
    counted: isCounted(meter),
    error: failure,
    charged: failure === null || conversation.hasOutput,
    reachedModel: conversation.reachedModel,
  });
  if (failure !== null) run.reply.error(failure);
  else await conversation.conclude(dependencies, meter, receipt);
}

class Conversation {
  readonly #job: ChatJob;
  readonly #run: RequestRun;
  readonly #created = Math.floor(Date.now() / 1_000);
  readonly #chunks: ChatChunks | null;
  #answer: ChatAnswer | null;
  #finished = false;
  #held = '';
  #hasOutput = false;
  #countedCompletion = 0;
  #reported: UpstreamUsage | null = null;
  #startedAtMs = 0;
  #endedAtMs = 0;

  constructor(job: ChatJob, run: RequestRun) {
    const { request, body } = job;
    this.#job = job;
    this.#run = run;
    const streamed = body.stream === true;
    this.#chunks = streamed
      ? new ChatChunks(
          request.requestId,
          this.#created,
          request.model,
          body.stream_options?.include_usage === true,
        )
      : null;
    this.#answer = streamed ? null : new ChatAnswer();
  }

  /** Whether the model generated anything: from then on it is paid for, and cannot be asked again elsewhere. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  get reachedModel(): boolean {
    return this.#startedAtMs > 0;
  }

  async ask(dependencies: JobDependencies, model: CatalogModel): Promise<void> {
    const { signal, log } = this.#run;
    const context = createCallContext(dependencies, this.#run);
    await callRoute(dependencies.upstreams, {
      model,
      signal,
      log,
      deadlineAtMs: this.#job.request.deadlineAtMs,
      hasOutput: () => this.hasOutput,
      attempt: async (upstream, target) => {
        if (upstream.chat === undefined)
          throw new UpstreamError('rejected', 'This upstream has no chat models.');
        this.#restart();
        this.#startedAtMs = performance.now();
        try {
          const body = this.#job.body as unknown as ChatBody;
          for await (const event of upstream.chat(target, body, this.#chunks !== null, context)) {
            this.#take(event);
            const wanted = this.#run.whenWanted();
            if (wanted !== null) await wanted;
          }
        } finally {
          this.#endedAtMs = performance.now();
        }
        if (!this.#finished) throw new UpstreamError('unavailable', 'The upstream stopped without an end.');
      },
    });
  }

  meter(): ChatMeter {
    return {
      reported: this.#reported,
      countedPrompt: this.#job.request.promptTokens,
      countedCompletion: this.#countedCompletion,
      billedMs: Math.round(this.#endedAtMs - this.#startedAtMs),
    };
  }

  async conclude(dependencies: JobDependencies, meter: ChatMeter, receipt: Receipt): Promise<void> {
    const { request, body } = this.#job;
    const usage = presentUsage(meter, receipt);
    if (this.#chunks !== null) {
      this.#run.reply.result(
        Buffer.from(this.#chunks.end(body.stream_options?.include_usage === true ? usage : null)),
      );
      return;
    }
    const answer = this.#answer!.finish(request.requestId, this.#created, request.model, usage);
    await sendResult(dependencies, request, this.#run, Buffer.from(JSON.stringify(answer)));
  }

  /** Another try begins: nothing of one that came to nothing is in the answer. */
  #restart(): void {
    this.#held = '';
    this.#finished = false;
    this.#reported = null;
    this.#chunks?.restart();
    if (this.#answer !== null) this.#answer = new ChatAnswer();
  }

  #take(event: ChatEvent): void {
    if (event.type === 'usage') {
      this.#reported = event.usage;
      return;
    }
    if (event.type === 'sources' || event.type === 'remember') return;
    if (event.type === 'finish') this.#finished = true;
    else if (isOutput(event.delta)) {
      this.#hasOutput = true;
      this.#countedCompletion = Math.min(
        boundOf(this.#job.body),
        this.#countedCompletion + countDelta(event.delta),
      );
    }
    this.#answer?.add(event);
    if (this.#chunks !== null) {
      this.#held += event.type === 'finish' ? this.#chunks.finish(event) : this.#chunks.delta(event);
      // A role without a word is held back: until the model has said something, a failure is a plain error.
      if (!this.#finished && !this.hasOutput) return;
      this.#run.reply.delta(this.#held, this.#countedCompletion);
      this.#held = '';
    }
  }
}

/** Whether a delta holds anything that a model said, beyond the role that opens its answer. */
function isOutput(delta: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(delta).some(([key, value]) => key !== 'role' && value !== null && value !== '');
}

/** Tokens that were reserved for: our own count may be wrong, and never charges for more. */
function boundOf({ max_completion_tokens: newer, max_tokens: older, n }: ChatJob['body']): number {
  return (newer ?? older ?? Infinity) * (n ?? 1);
}
