import { AppError, invalidField } from '../../shared/contract/errors.ts';
import { shorten } from '../../shared/runtime/shorten.ts';

const maxShownLength = 120;

/** What is wrong with a URL, to be read after "The URL …". */
export type UrlFault =
  | 'is not a URL'
  | 'is not https'
  | 'carries a user name or a password'
  | 'names a port that is not 443'
  | 'has a host without an address on the public internet';

/** What can be told of a URL without looking up its host; a redirect's target is relative to where it came from. */
export function readFetchUrl(text: string, ports: ReadonlySet<number>, from?: URL): URL | UrlFault {
  if (!URL.canParse(text, from?.href)) return 'is not a URL';
  const url = new URL(text, from);
  if (url.protocol !== 'https:') return 'is not https';
  if (url.username !== '' || url.password !== '') return 'carries a user name or a password';
  if (!ports.has(Number(url.port === '' ? 443 : url.port))) return 'names a port that is not 443';
  return url;
}

/** The host as sockets and name servers take it; the URL's parser has made dotted decimals of all IPv4 spellings. */
export function readHost(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
}

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
