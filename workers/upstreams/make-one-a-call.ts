import {
  type CallContext,
  type AcquireFurther,
  type ImageResponse,
  UpstreamError,
  type UpstreamUsage,
} from './upstream.ts';

type OneAnswer = PromiseSettledResult<ImageResponse>;

const acquireFreely: AcquireFurther = () => Promise.resolve({ release: () => undefined });

/**
 * Makes `n` images with as many calls, for models that make one image per call. Calls run in parallel as far as
 * slots are free, and the rest one after another in the request's own slot. The vendor charges for each image,
 * so a failed call does not end the others. No further call begins if it would fail in the same way.
 */
export async function makeOneACall(
  n: number,
  {
    signal,
    awaited = signal,
    acquireFurther = acquireFreely,
    onProgress,
    log,
  }: Pick<CallContext, 'signal' | 'awaited' | 'acquireFurther' | 'onProgress' | 'log'>,
  makeOne: () => Promise<ImageResponse>,
): Promise<ImageResponse> {
  const calls: Promise<OneAnswer>[] = [];
  let ended = 0;
  const enough = new AbortController();
  const over = AbortSignal.any([signal, awaited, enough.signal]);
  const begin = (): Promise<OneAnswer> => {
    const call = settle(makeOne());
    calls.push(call);
    if (calls.length === n) enough.abort();
    return call;
  };
  const settle = async (call: Promise<ImageResponse>): Promise<OneAnswer> => {
    const [settled] = await Promise.allSettled([call]);
    if (settled.status === 'rejected' && !mayOthersSucceed(settled.reason)) enough.abort();
    ended += 1;
    onProgress?.(ended / n);
    return settled;
  };
  const beginBeside = async (): Promise<void> => {
    const slot = await acquireFurther(over);
    slot?.release(over.aborted ? null : await begin());
  };

  const own = begin();
  // A slot request that is still waiting when no further call is to begin is abandoned. Its failure is not a
  // failed call.
  for (let i = 1; i < n; i++)
    beginBeside().catch((error: unknown) => log.warn({ err: error }, 'no further slot was available'));
  await own;
  while (!over.aborted) await begin();
  const made = await Promise.all(calls);
  signal.throwIfAborted();
  return joinImageAnswers(made);
}

/**
 * A rejected request would be rejected again, a rate limit or a bad key lasts, and a vendor that timed out may
 * still be working.
 */
const mayOthersSucceed = (error: unknown): boolean =>
  error instanceof UpstreamError && error.failure === 'unavailable' && !error.mayGoOn;

/**
 * Merges the responses of several calls into one, without those that failed. A count that is missing in any of
 * them is unknown in total.
 * @throws the failure if all failed: preferably a rejection, because retrying a rejected request is useless,
 * otherwise one whose image the vendor may still make and charge
 */
export function joinImageAnswers(made: readonly PromiseSettledResult<ImageResponse>[]): ImageResponse {
  const answers = made.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  const errors = made.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
  // An internal error is not a missing image.
  const ours = errors.find((error) => !(error instanceof UpstreamError));
  if (ours !== undefined) throw ours;
  const failures = [...answers.flatMap((one) => one.missing ?? []), ...(errors as UpstreamError[])];
  const missing =
    failures.find(({ failure }) => failure === 'rejected') ??
    failures.find(({ mayGoOn }) => mayGoOn) ??
    failures[0];
  if (answers.length === 0) throw missing!;
  const usages = answers.flatMap(({ usage }) => usage ?? []);
  return {
    images: answers.flatMap(({ images }) => images),
    calls: answers.reduce((sum, { calls }) => sum + calls, 0),
    ...(missing === undefined ? {} : { missing }),
    usage: usages.length < answers.length ? null : (usages.slice(1).reduce(addUsage, usages[0]!) ?? null),
  };
}

function addUsage(a: UpstreamUsage, b: UpstreamUsage): UpstreamUsage {
  const add = (x: number | null, y: number | null): number | null =>
    x === null || y === null ? null : x + y;
  return {
    promptTokens: add(a.promptTokens, b.promptTokens),
    completionTokens: add(a.completionTokens, b.completionTokens),
    cachedTokens: add(a.cachedTokens, b.cachedTokens),
    cacheWriteTokens: add(a.cacheWriteTokens, b.cacheWriteTokens),
    reasoningTokens: add(a.reasoningTokens, b.reasoningTokens),
    webSearchTokens: add(a.webSearchTokens, b.webSearchTokens),
  };
}
