import type { LookupFunction } from 'node:net';
import { buildConnector } from 'undici';

/** Addresses that are tried, one after another, before a host counts as not answering. */
const maxAddresses = 4;

export interface ConnectOptions {
  /** Destroys the socket, in whatever phase it is. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly isPublic: (address: string) => boolean;
  /** In place of the roots that Node trusts. */
  readonly ca: string | undefined;
}

/**
 * Makes TLS connections to these addresses and to no others, whatever name is asked for: a name that is resolved
 * again between check and connection could mean another host by then.
 */
export function connectTo(
  addresses: readonly string[],
  { signal, timeoutMs, isPublic, ca }: ConnectOptions,
): buildConnector.connector {
  const connect = buildConnector({
    lookup: answerWith(addresses.slice(0, maxAddresses)),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: 1_000,
    timeout: timeoutMs,
    signal,
    // Said here because a variable of the environment turns it off for whoever does not.
    rejectUnauthorized: true,
    maxCachedSessions: 0,
    allowH2: false,
    ...(ca === undefined ? {} : { ca }),
  });
  return (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      // The lock behind the lock: nothing is asked of a host that the check did not let pass.
      if (!isPublic(socket.remoteAddress ?? '')) {
        socket.destroy();
        return callback(new Error('the connection leads elsewhere than was checked'), null);
      }
      return callback(null, socket);
    });
  };
}

function answerWith(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  return (_host, options, callback) => {
    const first = all[0]!;
    if (options.all === true) callback(null, all);
    else callback(null, first.address, first.family);
  };
}
