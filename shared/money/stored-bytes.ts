/**
 * Counts the bytes of stored responses in Redis, per account. Responses stored under Idempotency-Keys and those of
 * durable jobs are counted separately: each kind has its own limit and must not use up the other's. The counter is a
 * hash with `sum`, and one field per ten minutes in which keys expire (named by their end, in Unix seconds). Expiring
 * keys are not subtracted, so `sum` is an upper bound, and it is recomputed from the fields when a limit is reached.
 */

/**
 * Above this, further requests of the account with an Idempotency-Key are rejected. Jobs are not, because their number
 * per account and day is limited, and so are the bytes that each stores in Redis.
 */
export const maxStoredBytesPerAccount = 64_000_000;

/**
 * Requests admitted below `maxStoredBytesPerAccount` continue to produce output. Above this limit, their output is no
 * longer stored and they end, because a full Redis could not admit any requests. Job responses above it go to the
 * object store, and the jobs fail while the store is down.
 */
export const maxStoredBytesInFlight = 4 * maxStoredBytesPerAccount;

/** Above this, for either kind, the account's smaller responses are also moved out of Redis once they are complete. */
export const moveThresholdBytes = maxStoredBytesPerAccount / 2;

/** Maximum size of one response. */
export const maxStoredBytesPerResponse = 64_000_000;
