import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { isPublicAddress } from '../../shared/platform/runtime/address-class.ts';
import { publicPorts, readHost } from '../../shared/platform/runtime/public-url.ts';
import { createHostResolver, type ResolveHost } from './resolve-host.ts';

/** What counts as the public internet. Only tests set these options, because they have no public hosts. */
export interface PublicInternetOptions {
  readonly resolveHost?: ResolveHost;
  readonly isPublic?: (address: string) => boolean;
  /** PEM certificates to trust instead of Node's. */
  readonly ca?: string;
  readonly ports?: ReadonlySet<number>;
}

export interface PublicInternet {
  readonly resolveHost: ResolveHost;
  readonly isPublic: (address: string) => boolean;
  readonly ca: string | undefined;
  readonly ports: ReadonlySet<number>;
}

export function readPublicInternet(options: PublicInternetOptions): PublicInternet {
  return {
    resolveHost: options.resolveHost ?? createHostResolver(),
    isPublic: options.isPublic ?? isPublicAddress,
    ca: options.ca,
    ports: options.ports ?? publicPorts,
  };
}

/**
 * Resolves all addresses of a URL's host. A single address that is not public rules out the host, because it would be
 * random which of its addresses is used. A name that does not exist gives the same result after the same delay as an
 * internal one, so that callers cannot find out which internal names exist.
 * @param rejectionStepMs null is returned only after a multiple of this, which hides how fast the lookup was
 * @returns null if the host has no address, or one that is not public
 */
export async function findPublicAddresses(
  url: URL,
  { resolveHost, isPublic }: PublicInternet,
  rejectionStepMs: number,
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  const host = readHost(url);
  const startedAtMs = performance.now();
  const addresses = isIP(host) === 0 ? await resolveHost(host, signal) : [host];
  if (addresses.length > 0 && addresses.every((address) => isPublic(address))) return addresses;
  if (isIP(host) === 0) {
    const tookMs = performance.now() - startedAtMs;
    await delay(Math.ceil(tookMs / rejectionStepMs) * rejectionStepMs - tookMs, undefined, { signal });
  }
  return null;
}
