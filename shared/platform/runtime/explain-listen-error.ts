import { ConfigError } from './config-error.ts';

/** The settings of ports that this product listens on. */
export type PortSetting = 'PORT' | 'METRICS_PORT';

/** Explains to the operator who set HOST and the port why it cannot be listened on. Returns other errors unchanged. */
export function explainListenError(host: string, port: number, error: Error, setting: PortSetting): Error {
  const reason = findReason(host, port, (error as NodeJS.ErrnoException).code, setting);
  return reason === null ? error : new ConfigError(reason, { cause: error });
}

function findReason(
  host: string,
  port: number,
  code: string | undefined,
  setting: PortSetting,
): string | null {
  if (code === 'EADDRINUSE')
    return `Port ${port} of ${host} is in use by another program: set ${setting} to a free one.`;
  if (code === 'EACCES') return `This user may not listen on port ${port}: set ${setting} to 1024 or higher.`;
  const isWrongAddress = code === 'EADDRNOTAVAIL' || code === 'EINVAL';
  const isUnknownName = code === 'ENOTFOUND' || code === 'EAI_AGAIN';
  if (!isWrongAddress && !isUnknownName) return null;
  const problem = isUnknownName ? 'does not resolve to an address' : 'is not an address of this machine';
  return `HOST ${host} ${problem}: set HOST to 127.0.0.1 for this machine only, or to 0.0.0.0 for all its addresses.`;
}
