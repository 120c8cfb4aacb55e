import { ConfigError } from './config-error.ts';

/** Explains to the operator who set HOST and PORT why the api cannot listen. Returns other errors unchanged. */
export function explainListenError(host: string, port: number, error: Error): Error {
  const reason = findReason(host, port, (error as NodeJS.ErrnoException).code);
  return reason === null ? error : new ConfigError(reason, { cause: error });
}

function findReason(host: string, port: number, code: string | undefined): string | null {
  if (code === 'EADDRINUSE')
    return `Port ${port} of ${host} is taken by another program: set PORT to a free one.`;
  if (code === 'EACCES')
    return `Port ${port} may not be listened on by this user: set PORT to one from 1024 on.`;
  const isNoAddress = code === 'EADDRNOTAVAIL' || code === 'EINVAL';
  const isNoName = code === 'ENOTFOUND' || code === 'EAI_AGAIN';
  if (!isNoAddress && !isNoName) return null;
  const what = isNoName ? 'a name that leads to no address' : 'no address of this machine';
  return `HOST is ${host}, ${what}: set HOST to 127.0.0.1 for this machine alone, or to 0.0.0.0 for all its addresses.`;
}
