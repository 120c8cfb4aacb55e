import { promises as dns } from 'node:dns';

/**
 * Resolves a name to all of its addresses, IPv4 first; empty if there are none or the lookup failed. Rejects
 * with the signal's reason.
 */
export type ResolveHost = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface HostResolverOptions {
  /** `address:port`; the machine's own if omitted. */
  readonly servers?: readonly string[];
  /** Per name, for all attempts with all servers. */
  readonly timeoutMs?: number;
}

/**
 * Creates a resolver that queries name servers instead of the operating system. The operating system has few
 * threads for lookups, so callers' names that do not resolve would delay the vendors' names. This also excludes
 * names that only this machine knows, from its hosts file and search domains, which are internal.
 */
export function createHostResolver({ servers, timeoutMs = 5_000 }: HostResolverOptions = {}): ResolveHost {
  return async (host, signal) => {
    signal.throwIfAborted();
    // One resolver per name, because cancelling ends all queries of a resolver.
    const resolver = new dns.Resolver({ timeout: Math.ceil(timeoutMs / 3), tries: 2 });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = (): void => resolver.cancel();
    const timer = setTimeout(cancel, timeoutMs);
    signal.addEventListener('abort', cancel, { once: true });
    try {
      // A name often has addresses of one family only. The query for the other then fails, which means nothing.
      const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
      signal.throwIfAborted();
      return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', cancel);
    }
  };
}
