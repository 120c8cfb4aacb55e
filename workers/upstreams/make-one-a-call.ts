import {
  type CallContext,
  type EnterAgain,
  type ImageAnswer,
  UpstreamError,
  type UpstreamUsage,
} from './upstream.ts';

type OneAnswer = PromiseSettledResult<ImageAnswer>;

const enterFreely: EnterAgain = () => Promise.resolve({ leave: () => undefined });

/**
 * Makes `n` images by as many calls, for models that make one a call: at once as far as slots are free, and the rest one
 * after the other in the slot that the request has. The vendor charges for each image that is made, so a call that fails
 * does not end the others; no further one is begun where it would fail as well.
 */
export async function makeOneACall(
  n: number,
  {
    signal,
    awaited = signal,
    enterAgain = enterFreely,
    onProgress,
    log,
  }: Pick<CallContext, 'signal' | 'awaited' | 'enterAgain' | 'onProgress' | 'log'>,
  makeOne: () => Promise<ImageAnswer>,
): Promise<ImageAnswer> {
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
  const settle = async (call: Promise<ImageAnswer>): Promise<OneAnswer> => {
    const [settled] = await Promise.allSettled([call]);
    if (settled.status === 'rejected' && !mayOthersSucceed(settled.reason)) enough.abort();
    ended += 1;
    onProgress?.(ended / n);
    return settled;
  };
  const beginBeside = async (): Promise<void> => {
    const slot = await enterAgain(over);
    slot?.leave(over.aborted ? null : await begin());
  };

  const own = begin();
  // One that still waits when no further call is to be begun is not waited for. What it fails with is no call's failure.
  for (let i = 1; i < n; i++)
    beginBeside().catch((error: unknown) => log.warn({ err: error }, 'no further slot could be had'));
  await own;
  while (!over.aborted) await begin();
  const made = await Promise.all(calls);
  signal.throwIfAborted();
  return joinImageAnswers(made);
}

/** A refused request is refused again, a limit or a key at fault lasts, and who did not answer in time may still be at it. */
const mayOthersSucceed = (error: unknown): boolean =>
  error instanceof UpstreamError && error.failure === 'unavailable' && !error.mayGoOn;

/**
 * The answers of several calls as one, without those that failed. A count that any of them lacks is unknown in all.
 * @throws the failure where all failed: a refusal if there is one, as sending a refused request again is useless, else
 * one whose image the vendor may still make and charge
 */
export function joinImageAnswers(made: readonly PromiseSettledResult<ImageAnswer>[]): ImageAnswer {
  const answers = made.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  const errors = made.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
  // A fault of ours is no missing image.
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
