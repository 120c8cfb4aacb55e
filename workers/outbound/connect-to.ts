import type { LookupFunction } from 'node:net';
import { buildConnector } from 'undici';

/** How many addresses are tried, one after another, before a host is reported as unreachable. */
const maxAddresses = 4;

export interface ConnectOptions {
  /** Destroys the socket at any stage. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly isPublic: (address: string) => boolean;
  /** Replaces the root certificates that Node trusts. */
  readonly ca: string | undefined;
}

/**
 * Creates a connector that makes TLS connections only to these addresses, regardless of the host name. Resolving the
 * name again between check and connection could return another host's address.
 */
export function connectTo(
  addresses: readonly string[],
  { signal, timeoutMs, isPublic, ca }: ConnectOptions,
): buildConnector.connector {
  const connect = buildConnector({
    lookup: resolveTo(addresses.slice(0, maxAddresses)),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: 1_000,
    timeout: timeoutMs,
    signal,
    // Set explicitly, because an environment variable can turn off the default.
    rejectUnauthorized: true,
    maxCachedSessions: 0,
    allowH2: false,
    ...(ca === undefined ? {} : { ca }),
  });
  return (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      // Defence in depth: no request goes to an address that is not public.
      if (!isPublic(socket.remoteAddress ?? '')) {
        socket.destroy();
        return callback(new Error('the connection goes to an address that was not checked'), null);
      }
      return callback(null, socket);
    });
  };
}

function resolveTo(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  return (_host, options, callback) => {
    const first = all[0]!;
    if (options.all === true) callback(null, all);
    else callback(null, first.address, first.family);
  };
}
