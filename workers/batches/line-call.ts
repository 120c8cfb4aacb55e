import { computeCost, noUsage } from '../../shared/catalog/cost.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { createChatJob } from '../../shared/preparing/chat/prepare-chat.ts';
import { createImageJob } from '../../shared/preparing/images/prepare-images.ts';
import { presentError } from '../../shared/responses/error-body.ts';
import { presentImages } from '../../shared/responses/present-images.ts';
import { noChannel } from '../../shared/work/queue/job-kinds.ts';
import type { ErrorPayload } from '../../shared/work/replies/error-payload.ts';
import { decodeResult } from '../../shared/work/replies/result.ts';
import type { Receipt, RequestOutcome } from '../../shared/work/settlement/finish-request.ts';
import type { JobDeps, LineEnd, RequestRun } from '../runs/job-context.ts';
import { runChat } from '../runs/run-chat.ts';
import { RunFacts } from '../runs/run-facts.ts';
import { runImage } from '../runs/run-image.ts';
import { findMaxCharge, type LineNames, type ReservedLine } from './ready-line.ts';
import { writeAnswer } from './result-lines.ts';
import type { FinishedLine, LineCharge } from './slice-results.ts';

/** What calls of lines need. */
export interface LineCallContext {
  readonly accountId: string;
  readonly userIp: string;
  readonly log: Logger;
  /** The URL of an image. */
  readonly linkOf: (objectKey: string) => string;
  /** Until when images are kept. */
  readonly imagesDueAtMs: number;
  /** Aborted when lines that have not begun must not begin any more. */
  readonly withdrawn: AbortSignal;
  /** Aborted when the process is about to exit. */
  readonly stopping: AbortSignal;
}

/** Writes the error of a line as its HTTP response would have it. */
export function writeFailure(
  line: LineNames,
  error: AppError,
): Pick<FinishedLine, 'index' | 'pieces' | 'status' | 'mayRetry'> {
  const { status, kind } = error;
  const body = Buffer.from(JSON.stringify(presentError(error)));
  return {
    index: line.index,
    pieces: writeAnswer(line, status, [body]),
    status,
    mayRetry: kind.retry && status >= 500,
  };
}

/** The request of a line, as if it had been admitted by itself. */
export function toRequest(line: ReservedLine, context: LineCallContext): AdmittedRequest {
  const { model, estimate } = line;
  return {
    requestId: line.id,
    accountId: context.accountId,
    model: model.id,
    pricing: model.pricing,
    priceVersion: model.priceVersion,
    admittedAtMs: Date.now(),
    // The batch's own window ends it.
    deadlineAtMs: Number.MAX_SAFE_INTEGER,
    userIp: context.userIp,
    promptTokens: estimate.promptTokens,
    user: estimate.user,
    claimHash: null,
  };
}

/**
 * Runs a line that is a chat or makes images.
 * @returns null if it did not begin, because lines must not begin any more
 */
export async function callLine(
  dependencies: JobDeps,
  line: ReservedLine,
  context: LineCallContext,
): Promise<FinishedLine | null> {
  const request = toRequest(line, context);
  const call = new LineCall(line, request, context);
  const run: RequestRun = {
    reply: noReply,
    signal: call.signal,
    stopping: context.stopping,
    whenResumed: () => null,
    cancelStalled: () => undefined,
    whenRequested: () => Promise.reject(new Error('the response of a line is not requested')),
    log: context.log.child({ requestId: line.id }),
    facts: new RunFacts(request),
    begin: () => call.begin(),
    line: call,
  };
  const { work } = line;
  try {
    if (work.kind === 'chat') {
      const job = createChatJob(work.job, request, line.units);
      await runChat(dependencies, { ...job, replyChannel: noChannel, attempt: 1 }, run);
    } else if (work.kind === 'image') {
      await runImage(dependencies, createImageJob(work.job, request, noChannel), run);
    } else throw new TypeError('embeddings are called together');
  } finally {
    call.close();
  }
  return call.toLine();
}

/** A line is answered by its result, and no client listens. */
const noReply: RequestRun['reply'] = {
  accepted: () => undefined,
  whenWritable: () => null,
  whenConfirmed: () => null,
  delta: () => undefined,
  result: () => undefined,
  stored: () => undefined,
  offered: () => undefined,
  facts: () => undefined,
  piece: () => async () => undefined,
  error: () => undefined,
};

/** Thrown to withdraw a line that has not begun. */
class LineWithdrawn extends Error {
  override readonly name = 'LineWithdrawn';
}

/** One call of a line: whether it has begun, and how it ends. */
class LineCall implements LineEnd {
  readonly #line: ReservedLine;
  readonly #request: AdmittedRequest;
  readonly #context: LineCallContext;
  readonly #abort = new AbortController();
  #hasBegun = false;
  #outcome: RequestOutcome | null = null;
  #response: readonly Buffer[] = [];
  #failure: ErrorPayload | null = null;

  constructor(line: ReservedLine, request: AdmittedRequest, context: LineCallContext) {
    this.#line = line;
    this.#request = request;
    this.#context = context;
    context.withdrawn.addEventListener('abort', this.#withdraw, { once: true });
    if (context.withdrawn.aborted) this.#withdraw();
  }

  readonly #withdraw = (): void => {
    if (!this.#hasBegun) this.#abort.abort(new LineWithdrawn());
  };

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get imagesDueAtMs(): number {
    return this.#context.imagesDueAtMs;
  }

  async begin(): Promise<void> {
    this.#abort.signal.throwIfAborted();
    this.#hasBegun = true;
  }

  close(): void {
    this.#context.withdrawn.removeEventListener('abort', this.#withdraw);
  }

  settle(outcome: RequestOutcome): Receipt {
    this.#outcome = outcome;
    this.#failure = outcome.error;
    const costNano = outcome.charged && outcome.reachedModel ? this.#costOf(outcome) : 0n;
    return { costNano, free: false, durationMs: Date.now() - this.#request.admittedAtMs };
  }

  respond(parts: readonly Buffer[]): void {
    this.#response = parts;
  }

  #costOf({ usage }: RequestOutcome): bigint {
    const cost = computeCost(this.#request.pricing, usage);
    const max = findMaxCharge(this.#line);
    return cost < max ? cost : max;
  }

  toLine(): FinishedLine | null {
    const { signal } = this;
    if (signal.reason instanceof LineWithdrawn) return null;
    const line = this.#line;
    const outcome = this.#outcome;
    const failure = outcome === null ? { code: 'internal_error' as const, message: '' } : this.#failure;
    const common = {
      reservedNano: line.reservedNano,
      charge: outcome === null ? null : this.#toCharge(outcome),
    };
    if (failure !== null) return { ...writeFailure(line, toError(failure)), ...common };
    const pieces = writeAnswer(line, 200, this.#readResponse());
    return { index: line.index, pieces, status: 200, ...common };
  }

  #readResponse(): readonly Buffer[] {
    if (this.#line.work.kind === 'chat') return this.#response;
    const { header, body } = decodeResult(Buffer.concat(this.#response), 'image');
    const response = presentImages(this.#line.id, header, body, this.#context.linkOf);
    const target = Buffer.allocUnsafe(response.byteLength!);
    for (let at = 0; at < target.length;) at += response.write(target.subarray(at));
    return [target];
  }

  #toCharge(outcome: RequestOutcome): LineCharge | null {
    if (!outcome.reachedModel) return null;
    const { model, priceVersion, admittedAtMs } = this.#request;
    const { charged, usage, counted, vendorCostNano = null } = outcome;
    return {
      model,
      priceVersion,
      // Tokens that are not charged are not the batch's.
      usage: charged ? usage : noUsage,
      reasoningTokens: charged ? (outcome.reasoningTokens ?? 0) : 0,
      counted,
      costNano: charged ? this.#costOf(outcome) : 0n,
      vendorCostNano,
      startedAtMs: admittedAtMs,
    };
  }
}

/** The error that a run has reported. */
export const toError = ({ code, message, issues, headers }: ErrorPayload): AppError =>
  new AppError(code, {
    ...(message !== '' && { message }),
    ...(issues !== undefined && { issues }),
    ...(headers !== undefined && { headers }),
  });
