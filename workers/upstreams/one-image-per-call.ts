import {
  type CallContext,
  type AcquireExtraSlot,
  type ImageResponse,
  UpstreamError,
  type UpstreamUsage,
} from './upstream.ts';

type CallResult = PromiseSettledResult<ImageResponse>;

const acquireWithoutLimit: AcquireExtraSlot = () => Promise.resolve({ release: () => undefined });

/**
 * Makes `n` images with `n` calls, for models that make one image per call. Calls run in parallel if slots are free,
 * and otherwise one after another in the slot of the first call. The vendor bills each image, so a failed call does
 * not cancel the others. No further call is started if it would fail in the same way.
 */
export async function makeOneImagePerCall(
  n: number,
  {
    signal,
    callerSignal = signal,
    acquireExtraSlot = acquireWithoutLimit,
    onProgress,
    log,
  }: Pick<CallContext, 'signal' | 'callerSignal' | 'acquireExtraSlot' | 'onProgress' | 'log'>,
  makeOne: () => Promise<ImageResponse>,
): Promise<ImageResponse> {
  const calls: Promise<CallResult>[] = [];
  let endedCalls = 0;
  const noMoreCalls = new AbortController();
  const stop = AbortSignal.any([signal, callerSignal, noMoreCalls.signal]);
  const startCall = (): Promise<CallResult> => {
    const call = settle(makeOne());
    calls.push(call);
    if (calls.length === n) noMoreCalls.abort();
    return call;
  };
  const settle = async (call: Promise<ImageResponse>): Promise<CallResult> => {
    const [settled] = await Promise.allSettled([call]);
    if (settled.status === 'rejected' && !mayOtherCallsSucceed(settled.reason)) noMoreCalls.abort();
    endedCalls += 1;
    onProgress?.(endedCalls / n);
    return settled;
  };
  const startInParallel = async (): Promise<void> => {
    const slot = await acquireExtraSlot(stop);
    slot?.release(stop.aborted ? null : await startCall());
  };

  const first = startCall();
  // A slot request that is still waiting when no further call will start is cancelled. Its failure is not a failed
  // call.
  for (let i = 1; i < n; i++)
    startInParallel().catch((error: unknown) => log.warn({ err: error }, 'acquiring another slot failed'));
  await first;
  while (!stop.aborted) await startCall();
  const results = await Promise.all(calls);
  signal.throwIfAborted();
  return mergeImageResponses(results);
}

/**
 * A rejected request would be rejected again, a rate limit or a bad key persists, and a vendor that timed out may
 * still be working.
 */
const mayOtherCallsSucceed = (error: unknown): boolean =>
  error instanceof UpstreamError && error.failure === 'unavailable' && !error.mayStillRun;

/**
 * Merges the responses of several calls into one, ignoring failed calls. A count that is missing in any response is
 * unknown in total.
 * @throws a failure if all calls failed: preferably a rejection, because retrying a rejected request is useless,
 * otherwise one whose image the vendor may still make and bill
 */
export function mergeImageResponses(results: readonly PromiseSettledResult<ImageResponse>[]): ImageResponse {
  const responses = results.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  const errors = results.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
  // An internal error must not be treated as a missing image.
  const internalError = errors.find((error) => !(error instanceof UpstreamError));
  if (internalError !== undefined) throw internalError;
  const failures = [...responses.flatMap((one) => one.shortfallReason ?? []), ...(errors as UpstreamError[])];
  const shortfallReason =
    failures.find(({ failure }) => failure === 'rejected') ??
    failures.find(({ mayStillRun }) => mayStillRun) ??
    failures[0];
  if (responses.length === 0) throw shortfallReason!;
  const usages = responses.flatMap(({ usage }) => usage ?? []);
  return {
    images: responses.flatMap(({ images }) => images),
    calls: responses.reduce((sum, { calls }) => sum + calls, 0),
    ...(shortfallReason === undefined ? {} : { shortfallReason }),
    usage: usages.length < responses.length ? null : (usages.slice(1).reduce(addUsage, usages[0]!) ?? null),
  };
}

function addUsage(a: UpstreamUsage, b: UpstreamUsage): UpstreamUsage {
  const add = (x: number | null, y: number | null): number | null =>
    x === null || y === null ? null : x + y;
  const imageTokens = (a.imageTokens ?? 0) + (b.imageTokens ?? 0);
  return {
    promptTokens: add(a.promptTokens, b.promptTokens),
    completionTokens: add(a.completionTokens, b.completionTokens),
    cachedTokens: add(a.cachedTokens, b.cachedTokens),
    cacheWriteTokens: add(a.cacheWriteTokens, b.cacheWriteTokens),
    reasoningTokens: add(a.reasoningTokens, b.reasoningTokens),
    webSearchTokens: add(a.webSearchTokens, b.webSearchTokens),
    ...(imageTokens > 0 && { imageTokens }),
  };
}
