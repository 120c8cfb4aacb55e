import { isDecodable } from '../runtime/is-decodable.ts';

/** The address of one Redis server. */
export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/**
 * Credentials and TLS, which all nodes of a Cluster share. A node reports the addresses of the others, but not how to
 * log in.
 */
export interface RedisAccess {
  readonly username?: string;
  readonly password?: string;
  readonly tls?: Record<string, never>;
}

/** Splits a comma-separated list of URLs. Passwords may contain commas. */
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

/** Returns the URL of another node with the same user, password and protocol. */
export function atNode(url: string, { host, port }: RedisNode): string {
  const { protocol, username, password } = new URL(url);
  const user = username === '' && password === '' ? '' : `${username}:${password}@`;
  return `${protocol}//${user}${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * @returns what is wrong with `REDIS_URL`, worded to follow its name in a message, without any password; null if it is
 * valid
 */
export function findRedisUrlProblem(urls: string): string | null {
  const nodes = splitRedisUrls(urls);
  if (!nodes.every(isRedisUrl)) {
    const hint = urls.includes('@') ? '. Percent-encode characters such as #, / and @ in a password' : '';
    return `must be an address such as redis://:password@10.0.0.1:6379; separate several nodes by commas${hint}`;
  }
  // ioredis would accept credentials in the query, but only for this node, and other code would not redact them there.
  if (nodes.some((url) => ['username', 'password'].some((name) => new URL(url).searchParams.has(name))))
    return 'must have the user and the password before the host: redis://user:password@10.0.0.1:6379';
  if (nodes.length === 1) return null;
  const access = nodes.map((url) => JSON.stringify(readAccess(url)));
  if (access.some((one) => one !== access[0]))
    return 'must have the same protocol, user and password for all nodes of a Cluster';
  // A Cluster has only database 0, so selecting another one would fail on every connection.
  if (nodes.some((url) => !['', '/', '/0'].includes(new URL(url).pathname)))
    return 'must not specify a database: a Cluster has only one';
  return null;
}

function isRedisUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if (!['redis:', 'rediss:'].includes(protocol) || !/^[^,]+$/.test(hostname)) return false;
  return isDecodable(username + password);
}
