import { createHmac, timingSafeEqual } from 'node:crypto';

/** Not a secret. All simulators use the same key, so that each accepts the signatures of the others. */
const SIGNING_KEY = 'vendor-simulator';

/**
 * Signs a text. Vendors attach such a signature to a model's reasoning, and verify it when the client sends both back.
 */
export function signText(text: string): string {
  return createHmac('sha256', SIGNING_KEY).update(text).digest('base64');
}

export function isSignatureOf(signature: string, text: string): boolean {
  const provided = Buffer.from(signature);
  const expected = Buffer.from(signText(text));
  return provided.length === expected.length && timingSafeEqual(provided, expected);
}
