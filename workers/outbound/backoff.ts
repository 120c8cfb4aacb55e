/** Doubling stops here, before a pause is no longer a safe integer. */
const maxDoublings = 20;
/** Up to this fraction of a pause is added at random. */
const jitterFraction = 0.2;

/**
 * Returns a pause that doubles with every attempt.
 * @param attempts failed attempts so far, including this one
 */
export const computeBackoffMs = (
  attempts: number,
  { firstMs, maxMs }: { readonly firstMs: number; readonly maxMs: number },
): number => Math.min(maxMs, firstMs * 2 ** Math.min(Math.max(0, attempts - 1), maxDoublings));

/**
 * Makes a pause a little longer, so that what failed together is not retried together.
 * @param random from 0 to 1
 */
export const addJitter = (pauseMs: number, random: number): number =>
  Math.ceil(pauseMs * (1 + jitterFraction * random));
