import { createHmac, timingSafeEqual } from 'node:crypto';

/** Not a secret. Two simulators act as one vendor and accept each other's signatures. */
const SIGNING_KEY = 'vendor-simulator';

/**
 * The signature that vendors attach to a model's reasoning to recognise it later. Opaque to the client that sends it
 * back.
 */
export function signText(text: string): string {
  return createHmac('sha256', SIGNING_KEY).update(text).digest('base64');
}

export function isSignatureOf(signature: string, text: string): boolean {
  const given = Buffer.from(signature);
  const issued = Buffer.from(signText(text));
  return given.length === issued.length && timingSafeEqual(given, issued);
}
