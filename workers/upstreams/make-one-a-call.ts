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
 * does not end the others.
 */
export async function makeOneACall(
  n: number,
  { signal, enterAgain = enterFreely, onProgress }: Pick<CallContext, 'signal' | 'enterAgain' | 'onProgress'>,
  makeOne: () => Promise<ImageAnswer>,
): Promise<ImageAnswer> {
  const calls: Promise<OneAnswer>[] = [];
  let ended = 0;
  const allBegun = new AbortController();
  const begin = (): Promise<OneAnswer> => {
    const call = settle(makeOne(), () => {
      ended += 1;
      onProgress?.(ended / n);
    });
    calls.push(call);
    if (calls.length === n) allBegun.abort();
    return call;
  };
  const isOver = (): boolean => calls.length === n || signal.aborted;
  const wanted = AbortSignal.any([signal, allBegun.signal]);
  const beginBeside = async (): Promise<void> => {
    const slot = await enterAgain(wanted);
    slot?.leave(isOver() ? null : await begin());
  };

  const own = begin();
  // One that still waits when all have begun is not waited for.
  for (let i = 1; i < n; i++)
    beginBeside().catch((reason: unknown) => calls.push(settle(Promise.reject(reason as Error))));
  await own;
  while (!isOver()) await begin();
  const made = await Promise.all(calls);
  signal.throwIfAborted();
  return joinImageAnswers(made);
}

async function settle(call: Promise<ImageAnswer>, onEnd?: () => void): Promise<OneAnswer> {
  const [settled] = await Promise.allSettled([call]);
  onEnd?.();
  return settled;
}

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
