import { AppError, invalidField } from '../../shared/contract/errors.ts';
import type { UrlFault } from '../../shared/runtime/public-url.ts';
import { shorten } from '../../shared/runtime/shorten.ts';

const maxShownLength = 120;

/** A URL as error texts show it: without its query and user, which can hold secrets, and not at any length. */
export function showUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const shown = url === null || url.host === '' ? '' : `${url.protocol}//${url.host}${url.pathname}`;
  if (shown === '') return 'of an image_url';
  return shorten(shown, maxShownLength);
}

/** The URL, or one that it redirects to, must not be fetched. */
export function refuseUrl(text: string, fault: UrlFault, isRedirected: boolean): AppError {
  const subject = isRedirected ? `${showUrl(text)} redirects to one that` : showUrl(text);
  return invalidField(['body', 'messages'], `The URL ${subject} ${fault}, so it is not fetched.`, {
    code: 'unsafe_url',
  });
}

/** The URL may be fetched, and that failed. */
export function failFetch(text: string, why: string, cause?: unknown): AppError {
  const msg = `The URL ${showUrl(text)} could not be fetched: ${why}.`;
  const { message, issues } = invalidField(['body', 'messages'], msg);
  return new AppError('validation_failed', { message, issues, cause });
}
