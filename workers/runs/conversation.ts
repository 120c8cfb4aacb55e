import type { AfterSettlement, Receipt } from '../../shared/work/settlement/finish-request.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { ChatJob } from '../../shared/work/queue/job-kinds.ts';
import { encodeJson } from '../../shared/encoding/json-pieces.ts';
import { findServingRoutes } from '../../shared/routing/chat-needs.ts';
import { callRoute, type GrantedCall } from '../routing/call-route.ts';
import { createImageFinder } from '../upstreams/collect-media.ts';
import { UpstreamError, type ChatBody, type ChatEvent } from '../upstreams/upstream.ts';
import { CallLifetime } from './call-lifetime.ts';
import { ChatResponseBuilder } from './chat-response-builder.ts';
import { ChatChunks } from './chat-chunks.ts';
import { ChatMeter, type CallEnding, type MeteredChat } from './chat-meter.ts';
import { presentUsage } from './chat-usage.ts';
import { isOutput } from './delta-content.ts';
import {
  callClassOfRun,
  createCallContext,
  hasCallerDisconnected,
  observersOf,
  type JobDeps,
  type RequestRun,
} from './job-context.ts';
import { isVendorStream } from './read-as-stream.ts';
import { ReasoningSaver } from './reasoning-saver.ts';
import type { ResponseMemory } from './generation-memory.ts';
import { sendResult } from './send-result.ts';
import { fillTemperature } from './fill-temperature.ts';
import { toFunctionCall } from './to-function-call.ts';
import { toLoadedReasoning } from './to-loaded-reasoning.ts';
import { waitForReader } from './wait-for-reader.ts';
import { chooseSourcesMode, WebSources, type SourcesMode } from './web-sources.ts';

/**
 * In milliseconds. Covers the first pause of a circuit breaker but not longer ones, because an interactive caller is
 * better off with an error.
 */
const waitLimits = { keyMs: 15_000, breakerMs: 1_500 };
/** How long after admission a stream has sent nothing yet, so that a failure can have its own status: see 0065. */
const statusMs = 1_600;
/** Durable jobs have no interactive caller. */
const durableWaitLimits = { keyMs: 120_000, breakerMs: 120_000 };

type OutputEvent = Extract<ChatEvent, { type: 'delta' | 'finish' }>;

/** Runs one chat: calls the model, forwards its output and meters it. */
export class Conversation {
  readonly #job: ChatJob;
  readonly #run: RequestRun;
  readonly #created = Math.floor(Date.now() / 1_000);
  readonly #chunks: ChatChunks | null;
  readonly #sourcesMode: SourcesMode;
  readonly #sources = new Map<number, WebSources>();
  readonly #annotated = new Set<number>();
  readonly #reasoning: ReasoningSaver;
  #response: ChatResponseBuilder | null;
  /** Of the current attempt. */
  #noteUsage: GrantedCall['noteUsage'] = () => undefined;
  #finished = false;
  #unsent = '';
  /** Whether the usage has changed since the last frame. */
  #hasUnsentUsage = false;
  #hasOutput = false;
  #hasReachedModel = false;
  /** When the first output was sent to a caller that reads a stream; Unix milliseconds. */
  #firstSentAtMs: number | null = null;
  readonly #meter: ChatMeter;
  #ending: CallEnding = 'broken';

  constructor(job: ChatJob, run: RequestRun) {
    const { request, body } = job;
    this.#job = job;
    this.#run = run;
    this.#meter = new ChatMeter(job);
    this.#reasoning = new ReasoningSaver(job);
    const streamed = body.stream === true;
    this.#chunks = streamed
      ? new ChatChunks(
          { id: request.requestId, created: this.#created, model: request.model },
          {
            includeUsage: body.stream_options?.include_usage === true,
            isNumbered: request.isResumable === true,
          },
        )
      : null;
    this.#response = streamed ? null : new ChatResponseBuilder();
    this.#sourcesMode = chooseSourcesMode(body);
  }

  /** The maximum number of tokens in the response, over all choices. */
  get #maxTokens(): number {
    return Math.max(1, this.#job.reservedTokens);
  }

  /** Whether the model has generated anything. From then on, the request cannot be retried. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  get reachedModel(): boolean {
    return this.#hasReachedModel;
  }

  /** Milliseconds from admission to the first output of a stream; null if there was none. */
  get firstTokenMs(): number | null {
    // The clocks of two machines may differ.
    return this.#firstSentAtMs === null
      ? null
      : Math.max(0, this.#firstSentAtMs - this.#job.request.admittedAtMs);
  }

  /**
   * Whether the caller is charged for the usage. A call that failed is charged only if there was output, and a call that
   * was not sent is never charged.
   */
  get isCharged(): boolean {
    return this.#ending !== 'broken' || this.#hasOutput;
  }

  async ask(dependencies: JobDeps, model: CatalogModel): Promise<void> {
    const { signal, log } = this.#run;
    const { request, body } = this.#job;
    const recalled = toLoadedReasoning(this.#job.reasoning ?? []);
    const context = { ...createCallContext(dependencies, request, this.#run), recalled };
    const chatBody = body as unknown as ChatBody;
    const callClass = callClassOfRun(this.#run, request);
    const isDurable = callClass !== 'interactive';
    await callRoute(dependencies.routing, {
      accountIds: () => [request.accountId],
      model: model.id,
      routes: findServingRoutes(model.routes, body),
      waitLimits: isDurable ? durableWaitLimits : waitLimits,
      callClass,
      takesKeptSlots: !isDurable,
      retriesRateLimits: isDurable,
      ...(this.#chunks !== null && !isDurable && { statusUntilMs: request.admittedAtMs + statusMs }),
      retriesTimeouts: true,
      signal,
      log,
      deadlineAtMs: request.deadlineAtMs,
      hasOutput: () => this.hasOutput,
      observers: () => observersOf(this.#run),
      findMissing: createImageFinder(chatBody, context),
      attempt: async (upstream, target, granted) => {
        const { route, reportHealthy, isContested, isKept, noteUsage, span = null } = granted;
        if (upstream.chat === undefined)
          throw new UpstreamError('rejected', 'This upstream has no chat models.');
        await this.#run.begin?.();
        if (isKept()) await this.#confirmCaller();
        this.#restart();
        this.#meter.start(model, route, log);
        this.#noteUsage = noteUsage;
        const isStreamed = isVendorStream(this.#job);
        const call = new CallLifetime(this.#run, {
          route,
          isStreamed,
          isCovered: () => this.#meter.isCovered,
        });
        const onSent = (): void => {
          call.markSent();
          this.#hasReachedModel = true;
          this.#meter.markSent();
        };
        let unreadMs = 0;
        // A vendor that keeps a connection alive without sending anything has probably hung.
        let hasBegun = false;
        try {
          const sentBody = fillTemperature(chatBody, model, target);
          const isTemperatureAdded = sentBody !== chatBody;
          const traceparent = span === null ? null : span.sentTraceparent;
          const callContext = { ...context, signal: call.signal, onSent, isTemperatureAdded, traceparent };
          for await (const events of upstream.chat(target, sentBody, isStreamed, callContext)) {
            if (!hasBegun && isStreamed) span?.noteFirstChunk();
            hasBegun = true;
            for (const event of events) this.#take(event, dependencies);
            this.#flush();
            if (this.hasOutput) reportHealthy();
            if (call.endIfCovered()) break;
            // Nothing is sent after the caller has disconnected.
            const writable = signal.aborted ? null : this.#run.reply.whenWritable();
            if (writable !== null) await writable;
            if (this.#run.whenResumed() === null) continue;
            const pausedAtMs = performance.now();
            await waitForReader(this.#run, isContested);
            unreadMs += performance.now() - pausedAtMs;
          }
          // If the caller disconnected, the call may end early, after one choice has ended or before its usage arrives.
          call.signal.throwIfAborted();
          if (this.#finished) this.#ending = 'complete';
        } catch (error) {
          if (call.signal.aborted) {
            this.#ending = call.isSent && hasCallerDisconnected(call.signal) ? 'left' : 'broken';
            throw error;
          }
          this.#hasReachedModel = true;
          if (!(error instanceof UpstreamError) || error.failure !== 'timeout') throw error;
          const isUnread = unreadMs * 2 > this.#meter.elapsedMs;
          if (isUnread) this.#meter.markUnread();
          // If the caller did not read for most of the time, or requested a response long enough to take that time, the
          // vendor has not failed. The route's circuit breaker ignores it, and the call is not retried.
          const isLongResponse =
            error.isRequestFailure && call.isSent && hasBegun && this.#meter.mayTakeFullTimeout;
          if (!isUnread && !isLongResponse) throw error;
          this.#ending = 'left';
          log.warn(
            { route: route.id, reason: error.message },
            'upstream call ended before its response was complete',
          );
          throw new AppError('upstream_timeout', { cause: error });
        } finally {
          call.close();
          this.#meter.end();
        }
        if (!this.#finished) throw new UpstreamError('unavailable', 'The upstream response is incomplete.');
      },
    }).finally(() => context.media.release());
    // If the caller has disconnected, the response was still read to its end and is settled from the vendor's report.
    signal.throwIfAborted();
  }

  /**
   * A request for a slot goes to Redis after the first frame, so its reply shows that the frame had listeners. A kept slot
   * needs no request: make sure that somebody waits before the call costs money.
   */
  async #confirmCaller(): Promise<void> {
    const confirmed = this.#run.reply.whenConfirmed(this.#run.signal);
    if (confirmed !== null) await confirmed;
    this.#run.signal.throwIfAborted();
  }

  measure(): MeteredChat {
    return this.#meter.measure(this.#ending);
  }

  async conclude(
    dependencies: JobDeps,
    metered: MeteredChat,
    receipt: Receipt,
    memory: Pick<ResponseMemory, 'resize'>,
  ): Promise<AfterSettlement | void> {
    const { request, body } = this.#job;
    await this.#reasoning.whenSaved();
    const usage = presentUsage(metered, receipt);
    if (this.#chunks !== null) {
      this.#run.reply.result(
        Buffer.from(this.#chunks.end(body.stream_options?.include_usage === true ? usage : null)),
      );
      return undefined;
    }
    const response = this.#response!.finish(request.requestId, this.#created, request.model, usage);
    const parts = await encodeJson(response, request.accountId);
    memory.resize(parts.reduce((sum, { length }) => sum + length, 0));
    return await sendResult(dependencies, request, this.#run, parts);
  }

  /** Discards everything from a failed attempt before the next one. */
  #restart(): void {
    this.#unsent = '';
    this.#hasUnsentUsage = false;
    this.#finished = false;
    this.#ending = 'broken';
    this.#sources.clear();
    this.#annotated.clear();
    this.#reasoning.restart();
    this.#chunks?.restart();
    if (this.#response !== null) this.#response = new ChatResponseBuilder();
  }

  #take(event: ChatEvent, { reasoning }: JobDeps): void {
    switch (event.type) {
      case 'usage':
        this.#meter.takeUsage(event);
        this.#noteUsage(event.usage);
        this.#hasUnsentUsage = true;
        break;
      case 'sources':
        this.#sourcesOf(event.index).add(event.sources);
        break;
      case 'remember':
        this.#reasoning.add(event);
        break;
      case 'delta':
        this.#reasoning.takeDelta(event);
        this.#takeOutput(event);
        break;
      case 'finish':
        this.#reasoning.saveChoice(event.index, reasoning);
        this.#finish(event);
        break;
      default:
        event satisfies never;
    }
  }

  #takeOutput(event: Extract<ChatEvent, { type: 'delta' }>): void {
    const visibleEvent = 'annotations' in event.delta ? this.#takeAnnotations(event) : event;
    if (isOutput(visibleEvent.delta)) {
      this.#hasOutput = true;
      this.#meter.takeDelta(visibleEvent);
      this.#run.progress?.(this.#meter.completionTokens / this.#maxTokens);
    }
    this.#send(visibleEvent);
  }

  #takeAnnotations(event: Extract<ChatEvent, { type: 'delta' }>): Extract<ChatEvent, { type: 'delta' }> {
    const { annotations, ...withoutAnnotations } = event.delta;
    if (Array.isArray(annotations) && annotations.length > 0) this.#annotated.add(event.index);
    return annotations !== undefined && this.#sourcesMode === 'hidden'
      ? { ...event, delta: withoutAnnotations }
      : event;
  }

  #finish(event: Extract<ChatEvent, { type: 'finish' }>): void {
    const { index, finishReason } = event;
    const endedNormally = finishReason === 'stop' || finishReason === 'length';
    // This text is ours, and the caller is not charged for it.
    const sources = endedNormally
      ? (this.#sources.get(index)?.conclude(this.#sourcesMode, this.#annotated.has(index)) ?? null)
      : null;
    if (sources !== null) this.#send({ type: 'delta', index, delta: sources });
    this.#finished = true;
    this.#meter.finish(index);
    this.#send(event);
  }

  #send(event: OutputEvent): void {
    // After the caller has disconnected, output is only metered.
    if (this.#run.signal.aborted) return;
    const sent = this.#job.wantsFunctionCall === true ? toFunctionCall(event) : event;
    if (sent === null) return;
    this.#response?.add(sent);
    if (this.#chunks === null) return;
    this.#unsent += sent.type === 'finish' ? this.#chunks.finish(sent) : this.#chunks.delta(sent);
  }

  /** Forwards the output of one read. */
  #flush(): void {
    if (this.#chunks === null || this.#run.signal.aborted) return;
    // Hold back the opening role-only delta so that a failure before the first token can still be a plain HTTP
    // error.
    if (!this.#finished && !this.#hasOutput) return;
    // If this worker dies, the request is settled from the counts in its last frame. So a frame with new counts is sent
    // even if it has no text, except after the end, when the result follows.
    if (this.#unsent === '' && (this.#finished || !this.#hasUnsentUsage)) return;
    if (this.#hasOutput) this.#firstSentAtMs ??= Date.now();
    this.#run.reply.delta(this.#unsent, this.#meter.completionTokens);
    this.#unsent = '';
    this.#hasUnsentUsage = false;
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
