import type { Receipt } from '../../shared/billing/finish-request.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { ChatJob } from '../../shared/queue/job-kinds.ts';
import { findUnmetNeed } from '../../shared/routing/chat-needs.ts';
import { callRoute } from '../routing/call-route.ts';
import { UpstreamError, type ChatBody, type ChatEvent, type UpstreamUsage } from '../upstreams/upstream.ts';
import { ChatAnswer } from './chat-answer.ts';
import { ChatChunks } from './chat-chunks.ts';
import { countDelta } from './count-delta.ts';
import { presentUsage, type ChatMeter } from './chat-usage.ts';
import { createCallContext, type JobDependencies, type RequestRun } from './job-context.ts';
import { sendResult } from './send-result.ts';
import { chooseSourcesMode, WebSources, type SourcesMode } from './web-sources.ts';

/** A breaker's first pause is waited for; through a longer one a caller at a keyboard would rather be told. */
const patience = { keyMs: 15_000, breakerMs: 1_500 };

type Said = Extract<ChatEvent, { type: 'delta' | 'finish' }>;

/** One chat as it is asked, sent on and metered. */
export class Conversation {
  readonly #job: ChatJob;
  readonly #run: RequestRun;
  readonly #created = Math.floor(Date.now() / 1_000);
  readonly #chunks: ChatChunks | null;
  readonly #sourcesMode: SourcesMode;
  readonly #sources = new Map<number, WebSources>();
  readonly #annotated = new Set<number>();
  readonly #remembering: Promise<void>[] = [];
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
    this.#sourcesMode = chooseSourcesMode(body);
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
    const { request, body } = this.#job;
    const context = createCallContext(dependencies, request, this.#run);
    await callRoute(dependencies.routing, {
      routes: model.routes.filter((route) => findUnmetNeed(route, body) === null),
      patience,
      outlastsLimits: false,
      signal,
      log,
      deadlineAtMs: request.deadlineAtMs,
      hasOutput: () => this.hasOutput,
      attempt: async (upstream, target, { onAlive }) => {
        if (upstream.chat === undefined)
          throw new UpstreamError('rejected', 'This upstream has no chat models.');
        this.#restart();
        this.#startedAtMs = performance.now();
        let unreadMs = 0;
        try {
          const asked = body as unknown as ChatBody;
          for await (const event of upstream.chat(target, asked, this.#chunks !== null, context)) {
            this.#take(event, dependencies);
            if (this.hasOutput) onAlive();
            const wanted = this.#run.whenWanted();
            if (wanted === null) continue;
            const pausedAtMs = performance.now();
            await wanted;
            unreadMs += performance.now() - pausedAtMs;
          }
        } catch (error) {
          const tookMs = performance.now() - this.#startedAtMs;
          // A vendor whose time went by while the caller did not read has not failed: nothing of it is said of the route.
          if (error instanceof UpstreamError && error.failure === 'timeout' && unreadMs * 2 > tookMs)
            throw new AppError('upstream_timeout', { cause: error });
          throw error;
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
    // Whoever answers the tool calls of this answer finds what was remembered with them.
    await Promise.all(this.#remembering);
    const usage = presentUsage(meter, receipt);
    if (this.#chunks !== null) {
      this.#run.reply.result(
        Buffer.from(this.#chunks.end(body.stream_options?.include_usage === true ? usage : null)),
      );
      return;
    }
    const answer = this.#answer!.finish(request.requestId, this.#created, request.model, usage);
    await sendResult(dependencies, request, this.#run, [Buffer.from(JSON.stringify(answer))]);
  }

  /** Another try begins: nothing of one that came to nothing is in the answer. */
  #restart(): void {
    this.#held = '';
    this.#finished = false;
    this.#reported = null;
    this.#sources.clear();
    this.#annotated.clear();
    this.#chunks?.restart();
    if (this.#answer !== null) this.#answer = new ChatAnswer();
  }

  #take(event: ChatEvent, { turns }: JobDependencies): void {
    switch (event.type) {
      case 'usage':
        this.#reported = event.usage;
        break;
      case 'sources':
        this.#sourcesOf(event.index).add(event.sources);
        break;
      case 'remember': {
        const { accountId } = this.#job.request;
        this.#remembering.push(turns.remember(accountId, event.toolCallId, event.value));
        break;
      }
      case 'delta':
        this.#say(event);
        break;
      case 'finish':
        this.#finish(event);
        break;
      default:
        event satisfies never;
    }
  }

  #say(event: Extract<ChatEvent, { type: 'delta' }>): void {
    const { annotations, ...rest } = event.delta;
    if (Array.isArray(annotations) && annotations.length > 0) this.#annotated.add(event.index);
    const said =
      annotations !== undefined && this.#sourcesMode === 'hidden' ? { ...event, delta: rest } : event;
    if (isOutput(said.delta)) {
      this.#hasOutput = true;
      this.#countedCompletion = Math.min(
        boundOf(this.#job.body),
        this.#countedCompletion + countDelta(said.delta),
      );
    }
    this.#send(said);
  }

  #finish(event: Extract<ChatEvent, { type: 'finish' }>): void {
    const { index, finishReason } = event;
    const isAnswer = finishReason === 'stop' || finishReason === 'length';
    // Our own words, which nobody pays for.
    const told = isAnswer
      ? (this.#sources.get(index)?.conclude(this.#sourcesMode, this.#annotated.has(index)) ?? null)
      : null;
    if (told !== null) this.#send({ type: 'delta', index, delta: told });
    this.#finished = true;
    this.#send(event);
  }

  #send(event: Said): void {
    this.#answer?.add(event);
    if (this.#chunks === null) return;
    this.#held += event.type === 'finish' ? this.#chunks.finish(event) : this.#chunks.delta(event);
    // A role without a word is held back: until the model has said something, a failure is a plain error.
    if (!this.#finished && !this.hasOutput) return;
    this.#run.reply.delta(this.#held, this.#countedCompletion);
    this.#held = '';
  }

  #sourcesOf(index: number): WebSources {
    let sources = this.#sources.get(index);
    if (sources === undefined) {
      sources = new WebSources();
      this.#sources.set(index, sources);
    }
    return sources;
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
