// decision 0034
/** An account's requests per minute, as reported to callers. */
export interface RateLimit {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

/** A reply of a script that includes rate-window.lua: an outcome, the account's rate limit, and further values. */
export type LimitedReply<Outcome extends string, Values extends readonly unknown[] = []> = [
  outcome: Outcome,
  limit: number,
  remaining: number,
  resetSeconds: number,
  ...values: Values,
];

export function readRateLimit([, limit, remaining, resetSeconds]: LimitedReply<
  string,
  unknown[]
>): RateLimit {
  return { limit, remaining, resetSeconds };
}
