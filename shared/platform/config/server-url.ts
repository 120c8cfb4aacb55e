import { stripTrailing } from '../runtime/strip-trailing.ts';

/**
 * Returns this service's address in the form that is published and compared: scheme and host in lower case, without the
 * scheme's default port. Operators may specify it as callers know it, with the version at the end.
 */
export function toServerUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  const address = stripTrailing(`${origin}${pathname}`, '/');
  return address.endsWith('/v1') ? stripTrailing(address.slice(0, -'/v1'.length), '/') : address;
}
