/** What is wrong with a URL that a caller sent, to be read after "The URL …". */
export type UrlFault =
  | 'cannot be parsed'
  | 'is not https'
  | 'carries a user name or a password'
  | 'names a port that is not 443'
  | 'has a host without an address on the public internet';

/** The only port of callers' URLs; tests have servers on others. */
export const publicPorts: ReadonlySet<number> = new Set([443]);

/** Checks a URL without looking up its host. `from` is where a redirect came from; its target may be relative to that. */
export function readPublicUrl(text: string, ports: ReadonlySet<number>, from?: URL): URL | UrlFault {
  if (!URL.canParse(text, from?.href)) return 'cannot be parsed';
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
