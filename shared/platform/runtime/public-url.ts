/** What is wrong with a caller's URL, worded to follow "The URL". */
export type UrlProblem =
  | 'cannot be parsed'
  | 'is not https'
  | 'contains a user name or a password'
  | 'uses a port other than 443'
  | 'has a host that is not on the public internet';

/** The only port allowed in callers' URLs. Tests use servers on other ports. */
export const publicPorts: ReadonlySet<number> = new Set([443]);

/**
 * Checks a URL without resolving its host. `from` is the URL that redirected here; the target may be relative to it.
 */
export function readPublicUrl(text: string, ports: ReadonlySet<number>, from?: URL): URL | UrlProblem {
  if (!URL.canParse(text, from?.href)) return 'cannot be parsed';
  const url = new URL(text, from);
  if (url.protocol !== 'https:') return 'is not https';
  if (url.username !== '' || url.password !== '') return 'contains a user name or a password';
  if (!ports.has(Number(url.port === '' ? 443 : url.port))) return 'uses a port other than 443';
  return url;
}

/**
 * Returns the host in the form that sockets and name servers accept. The URL parser has normalized all IPv4
 * spellings.
 */
export function readHost(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
}
