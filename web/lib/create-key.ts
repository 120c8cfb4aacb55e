/** Returns a text that no other call returns, such as an `Idempotency-Key`. `crypto.randomUUID` exists on https alone. */
export const createKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');
