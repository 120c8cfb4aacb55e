import { ApiError } from '../../../lib/api-error.ts';
import type { Language } from '../../../lib/messages.ts';

/** What went wrong, in a form that survives a reload. */
export interface Failure {
  readonly code: string;
  readonly text: Readonly<Record<Language, string>>;
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;
}

export function readFailure(error: unknown): Failure {
  const known = error instanceof ApiError ? error : ApiError.ofNetwork();
  const { code, text, requestId, retryAfterSeconds, issues } = known;
  const fields = issues.map(({ field }) => field).filter((field) => field !== '');
  const where = fields.length === 0 ? '' : ` (${fields.join(', ')})`;
  return {
    code,
    text: { en: `${text.en}${where}`, ru: `${text.ru}${where}` },
    requestId,
    retryAfterSeconds,
  };
}
