/**
 * The address of this service as it is published and compared: the scheme and the host in small letters, without the
 * scheme's own port. An operator may give it as callers know it, with the version at its end.
 */
export function toServerUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`.replace(/\/+$/, '').replace(/\/+v1$/, '');
}
