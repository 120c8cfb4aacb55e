/** A key for a request that must not be done twice. `crypto.randomUUID` exists on https alone. */
export const createIdempotencyKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');
