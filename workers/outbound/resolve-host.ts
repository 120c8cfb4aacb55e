import { promises as dns } from 'node:dns';

/** All addresses of a name, IPv4 first; none where there are none or nobody told. Rejects with the signal's reason. */
export type ResolveHost = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface HostResolverOptions {
  /** `address:port`; the machine's own otherwise. */
  readonly servers?: readonly string[];
  /** For a name, all tries with all servers together. */
  readonly timeoutMs?: number;
}

/**
 * Asks name servers, not the operating system: that has few threads for it, and callers' names that nobody answers
 * would keep the vendors' names waiting. It also leaves out the names that only this machine knows, of its hosts file
 * and its search domains, which are internal ones.
 */
export function createHostResolver({ servers, timeoutMs = 5_000 }: HostResolverOptions = {}): ResolveHost {
  return async (host, signal) => {
    signal.throwIfAborted();
    // One for each name, for cancelling ends all queries of a resolver.
    const resolver = new dns.Resolver({ timeout: Math.ceil(timeoutMs / 3), tries: 2 });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = (): void => resolver.cancel();
    const timer = setTimeout(cancel, timeoutMs);
    signal.addEventListener('abort', cancel, { once: true });
    try {
      // A name often has addresses of one family only; the other's query then fails, which says nothing.
      const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
      signal.throwIfAborted();
      return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', cancel);
    }
  };
}
