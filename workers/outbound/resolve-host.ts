import { promises as dns } from 'node:dns';

/**
 * Resolves a name to all of its addresses, IPv4 first. The result is empty if there are none or the lookup failed.
 * Rejects with the signal's reason when it is aborted.
 */
export type ResolveHost = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface HostResolverOptions {
  /** `address:port`; the machine's name servers if omitted. */
  readonly servers?: readonly string[];
  /** Per name, including all attempts with all servers. */
  readonly timeoutMs?: number;
}

/**
 * Creates a resolver that queries name servers directly. Lookups through the operating system share a few threads, so
 * callers' names that do not resolve would delay lookups of vendors' names. Direct queries also exclude names that only
 * this machine knows, from its hosts file and search domains, which are internal.
 */
export function createHostResolver({ servers, timeoutMs = 5_000 }: HostResolverOptions = {}): ResolveHost {
  return async (host, signal) => {
    signal.throwIfAborted();
    // Use one resolver per name, because `cancel` cancels all queries of a resolver.
    const resolver = new dns.Resolver({ timeout: Math.ceil(timeoutMs / 3), tries: 2 });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = (): void => resolver.cancel();
    const timer = setTimeout(cancel, timeoutMs);
    signal.addEventListener('abort', cancel, { once: true });
    try {
      // Many names have addresses of only one family. The query for the other one then fails, which can be ignored.
      const lookups = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
      signal.throwIfAborted();
      return lookups.flatMap((lookup) => (lookup.status === 'fulfilled' ? lookup.value : []));
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', cancel);
    }
  };
}
