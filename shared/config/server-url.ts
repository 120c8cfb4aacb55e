/**
 * Returns this service's address in the form that is published and compared: scheme and host in lower case, without the
 * scheme's default port. Operators may specify it as callers know it, with the version at the end.
 */
export function toServerUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`.replace(/\/+$/, '').replace(/\/+v1$/, '');
}
