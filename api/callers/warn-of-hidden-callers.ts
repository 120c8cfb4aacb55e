import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/logger.ts';

/**
 * Warns if the api cannot tell its callers apart. It speaks no TLS itself, so where it is reached by https there is a proxy
 * in front of it, and every connection has the address of that proxy.
 */
export function warnOfHiddenCallers(
  { publicUrl, trustProxy }: Pick<Config, 'publicUrl' | 'trustProxy'>,
  log: Pick<Logger, 'warn'>,
): void {
  if (publicUrl === null || trustProxy || new URL(publicUrl).protocol !== 'https:') return;
  log.warn(
    { publicUrl },
    'all callers behind the proxy count as one address for the limits of the account area; set TRUST_PROXY=on',
  );
}
