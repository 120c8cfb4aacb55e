import { isDecodable } from '../runtime/is-decodable.ts';

/** One Redis server, in the form that clients take. */
export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/**
 * Credentials and TLS, which all nodes of a Cluster share. A node tells clients where the others are, but not how to
 * log in.
 */
export interface RedisAccess {
  readonly username?: string;
  readonly password?: string;
  readonly tls?: Record<string, never>;
}

/** Splits a comma-separated list of URLs. A password may contain a comma, too. */
export function splitRedisUrls(urls: string): string[] {
  return urls.split(/,(?=\s*rediss?:\/\/)/).map((url) => url.trim());
}

export function readNode(url: string): RedisNode {
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? 6379 : Number(port) };
}

export function readAccess(url: string): RedisAccess {
  const { protocol, username, password } = new URL(url);
  return {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
}

/** The same user, password and protocol at another node. */
export function atNode(url: string, { host, port }: RedisNode): string {
  const { protocol, username, password } = new URL(url);
  const user = username === '' && password === '' ? '' : `${username}:${password}@`;
  return `${protocol}//${user}${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * @returns what is wrong with `REDIS_URL`, to follow its name in a message and without any password; null if it is
 * valid
 */
export function findRedisUrlFault(urls: string): string | null {
  const nodes = splitRedisUrls(urls);
  if (!nodes.every(isRedisUrl)) {
    const hint = urls.includes('@')
      ? '. Characters such as #, / and @ in a password are percent-encoded'
      : '';
    return `must be an address such as redis://:password@10.0.0.1:6379; several nodes are separated by commas${hint}`;
  }
  // ioredis would accept credentials in the query, for this node only, and other code would not know to redact them
  // there.
  if (nodes.some((url) => ['username', 'password'].some((name) => new URL(url).searchParams.has(name))))
    return 'must have the user and the password in front of the host: redis://user:password@10.0.0.1:6379';
  if (nodes.length === 1) return null;
  const access = nodes.map((url) => JSON.stringify(readAccess(url)));
  if (access.some((one) => one !== access[0]))
    return 'must have the same protocol, user and password for all nodes of a Cluster';
  // In a Cluster Redis refuses to leave database 0, each time a client connects.
  if (nodes.some((url) => !['', '/', '/0'].includes(new URL(url).pathname)))
    return 'must name no database: a Cluster has only one';
  return null;
}

function isRedisUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if (!['redis:', 'rediss:'].includes(protocol) || !/^[^,]+$/.test(hostname)) return false;
  return isDecodable(username + password);
}
