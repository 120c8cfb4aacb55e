import { invalidField } from '../../../shared/contract/errors.ts';
import type { ApiContext } from './context.ts';

/** Printable ASCII, as allowed in a header. */
const idempotencyKey = /^[\x20-\x7e]{1,255}$/;

/** Returns null if the caller sent no Idempotency-Key. Other headers are ignored. */
export function readIdempotencyKey(context: ApiContext): string | null {
  const key = context.req.headers['idempotency-key'];
  if (key === undefined) return null;
  const text = String(key).trim();
  if (!idempotencyKey.test(text)) {
    throw invalidField(['header', 'Idempotency-Key'], 'must have 1 to 255 printable ASCII characters');
  }
  return text;
}
