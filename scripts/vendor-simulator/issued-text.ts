import { createHmac, timingSafeEqual } from 'node:crypto';

/** Not a secret: two simulators are one vendor, and know what the other has issued. */
const SIGNING_KEY = 'vendor-simulator';

/** What vendors hang on a model's thoughts, so that they know them again: opaque to who carries it back. */
export function signText(text: string): string {
  return createHmac('sha256', SIGNING_KEY).update(text).digest('base64');
}

export function isSignatureOf(signature: string, text: string): boolean {
  const given = Buffer.from(signature);
  const issued = Buffer.from(signText(text));
  return given.length === issued.length && timingSafeEqual(given, issued);
}
