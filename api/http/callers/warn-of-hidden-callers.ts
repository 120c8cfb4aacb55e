import type { Config } from '../../../shared/platform/config/config.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';

/**
 * Warns if the api cannot distinguish its clients. It does not speak TLS itself, so if its public URL is https, there
 * is a proxy in front of it, and every connection has the proxy's address.
 */
export function warnOfHiddenCallers(
  { publicUrl, trustProxy }: Pick<Config, 'publicUrl' | 'trustProxy'>,
  log: Pick<Logger, 'warn'>,
): void {
  if (publicUrl === null || trustProxy || new URL(publicUrl).protocol !== 'https:') return;
  log.warn(
    { publicUrl },
    'all callers share the address of the proxy in the limits of the account area; set TRUST_PROXY=on',
  );
}
