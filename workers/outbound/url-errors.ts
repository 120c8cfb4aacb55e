import { AppError, invalidField } from '../../shared/contract/errors.ts';
import type { UrlProblem } from '../../shared/platform/runtime/public-url.ts';
import { shorten } from '../../shared/platform/runtime/shorten.ts';

const maxShownLength = 120;

/**
 * Returns a URL as shown in error messages: shortened, and without its query and user info, which can contain secrets.
 * Returns "of an image_url", which continues "The URL …", if the text is not a URL with a host.
 */
export function showUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const shownUrl = url === null || url.host === '' ? '' : `${url.protocol}//${url.host}${url.pathname}`;
  if (shownUrl === '') return 'of an image_url';
  return shorten(shownUrl, maxShownLength);
}

/** Creates the error for a URL that must not be fetched, or that redirects to one. */
export function urlRejected(text: string, problem: UrlProblem, isRedirected: boolean): AppError {
  const subject = isRedirected ? `${showUrl(text)} redirects to a URL that` : showUrl(text);
  return invalidField(['body', 'messages'], `The URL ${subject} ${problem}, so it is not fetched.`, {
    code: 'unsafe_url',
  });
}

/** Creates the error for a failed fetch of a permitted URL. */
export function fetchFailed(text: string, reason: string, cause?: unknown): AppError {
  const msg = `The URL ${showUrl(text)} could not be fetched: ${reason}.`;
  const { message, issues } = invalidField(['body', 'messages'], msg);
  return new AppError('validation_failed', { message, issues, cause });
}
